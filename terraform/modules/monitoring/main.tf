resource "aws_s3_bucket_metric" "archive" {
  bucket = var.bucket
  name   = local.filter_id

  dynamic "filter" {
    for_each = var.prefix == "" ? [] : ["${var.prefix}/"]

    content {
      prefix = filter.value
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "s3_errors" {
  for_each = local.s3_errors

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.threshold
  evaluation_periods  = 3
  datapoints_to_alarm = 2
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
  tags                = var.tags

  metric_query {
    id          = "percent"
    label       = "Percent of requests"
    expression  = "100 * errors / requests"
    return_data = true
  }

  metric_query {
    id = "errors"

    metric {
      namespace   = "AWS/S3"
      metric_name = each.value.metric_name
      stat        = "Sum"
      period      = 300
      dimensions  = { BucketName = var.bucket, FilterId = local.filter_id }
    }
  }

  metric_query {
    id = "requests"

    metric {
      namespace   = "AWS/S3"
      metric_name = "AllRequests"
      stat        = "Sum"
      period      = 300
      dimensions  = { BucketName = var.bucket, FilterId = local.filter_id }
    }
  }

  depends_on = [aws_s3_bucket_metric.archive]
}

resource "aws_cloudwatch_metric_alarm" "service" {
  for_each = var.metrics

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = var.namespace
  metric_name         = each.value.metric_name
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.threshold
  period              = each.value.period_seconds
  evaluation_periods  = each.value.periods
  treat_missing_data  = each.value.alarms_if_silent ? "breaching" : "notBreaching"
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
  tags                = var.tags
}
