output "archive_url" {
  description = "What --archive takes."
  value       = module.bucket.archive_url
}

output "role_arns" {
  description = "The roles by archiver, sweeper and reader."
  value       = module.iam.role_arns
}

output "agent_role_arn" {
  description = "The agent's role."
  value       = aws_iam_role.agent.arn
}

output "alarm_arns" {
  description = "The alarms by name."
  value       = module.monitoring.alarm_arns
}
