# Everything: an archive below a prefix, segments that grow cheaper with age, segments that are encrypted before they leave their
# host, Airflow that archives and sweeps, Spark that reads and pins, an agent of one's own, and alarms by mail.

provider "aws" {
  region = var.region
}

module "bucket" {
  source = "../../modules/bucket"

  name            = var.bucket
  prefix          = "kafka/production"
  noncurrent_days = 90
  transitions = [
    { days = 30, storage_class = "STANDARD_IA" },
    { days = 120, storage_class = "GLACIER_IR" },
  ]
  access_logs = var.log_bucket == null ? null : { bucket = var.log_bucket, prefix = "${var.bucket}/" }
  tags        = var.tags
}

# `tiering offload --encrypt --keys aws-kms://alias/kafka-segments`
resource "aws_kms_key" "segments" {
  description             = "Wraps the data keys of archived segments"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = jsonencode({ Version = "2012-10-17", Statement = [local.account_rules] })
  tags                    = var.tags
}

resource "aws_kms_alias" "segments" {
  name          = "alias/kafka-segments"
  target_key_id = aws_kms_key.segments.key_id
}

module "iam" {
  source = "../../modules/iam"

  name           = "kafka-production"
  bucket_arn     = module.bucket.arn
  prefix         = module.bucket.prefix
  bucket_key_arn = module.bucket.key_arn
  data_key_arns  = [aws_kms_key.segments.arn]
  readers_pin    = true
  trusted = {
    archiver = { aws = [var.airflow_role_arn], services = ["ec2.amazonaws.com"] }
    sweeper  = { aws = [var.airflow_role_arn] }
    reader   = { aws = [var.spark_role_arn] }
  }
  instance_profiles   = ["archiver"]
  max_session_seconds = 43200
  tags                = var.tags
}

# `tiering agent` archives, retains and sweeps: a role of its own with both policies. The archiver's role is not enough, for it
# is denied every deletion.
resource "aws_iam_role" "agent" {
  name = "kafka-production-agent"
  tags = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ec2.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy_attachment" "agent" {
  for_each = toset(["archiver", "sweeper", "wrap", "unwrap"])

  role       = aws_iam_role.agent.name
  policy_arn = module.iam.policy_arns[each.key]
}

resource "aws_sns_topic" "alarms" {
  name              = "kafka-production-archive"
  kms_master_key_id = aws_kms_key.alarms.arn
  tags              = var.tags
}

# The topic's own key: CloudWatch may not use the one that AWS keeps for SNS.
resource "aws_kms_key" "alarms" {
  description         = "Alarms on the archive of Kafka's log"
  enable_key_rotation = true
  tags                = var.tags

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      local.account_rules,
      {
        Effect    = "Allow"
        Principal = { Service = "cloudwatch.amazonaws.com" }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey*"]
        Resource  = "*"
      },
    ]
  })
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

locals {
  # The account's own policies say who uses a key.
  account_rules = {
    Effect    = "Allow"
    Principal = { AWS = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:root" }
    Action    = "kms:*"
    Resource  = "*"
  }
}

resource "aws_sns_topic_subscription" "alarms" {
  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = var.alarms_to
}

module "monitoring" {
  source = "../../modules/monitoring"

  name          = "kafka-production"
  bucket        = module.bucket.name
  prefix        = module.bucket.prefix
  alarm_actions = [aws_sns_topic.alarms.arn]
  tags          = var.tags
}
