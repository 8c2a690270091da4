output "role_arns" {
  description = "The roles' ARNs by archiver, sweeper and reader."
  value       = { for name, role in aws_iam_role.archive : name => role.arn }
}

output "role_names" {
  description = "The roles' names by archiver, sweeper and reader."
  value       = { for name, role in aws_iam_role.archive : name => role.name }
}

output "policy_arns" {
  description = "The policies' ARNs by archiver, sweeper, reader, pins, wrap and unwrap, for roles of your own."
  value       = { for name, policy in aws_iam_policy.archive : name => policy.arn }
}

output "instance_profile_names" {
  description = "The instance profiles' names by role."
  value       = { for name, profile in aws_iam_instance_profile.archive : name => profile.name }
}
