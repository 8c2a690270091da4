output "alarm_arns" {
  description = "The alarms' ARNs by name."
  value = merge(
    { for name, alarm in aws_cloudwatch_metric_alarm.s3_errors : name => alarm.arn },
    { for name, alarm in aws_cloudwatch_metric_alarm.service : name => alarm.arn },
  )
}
