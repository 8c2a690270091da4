data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

resource "aws_kms_key" "archive" {
  count = var.kms_key == null ? 1 : 0

  description             = "Archive of Kafka's log in ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy = templatefile("${path.module}/policies/key.json.tftpl", {
    account_root_arn = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:root"
  })
  tags = var.tags

  # Without its key nothing in the bucket can be read any more.
  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_kms_alias" "archive" {
  count = var.kms_key == null ? 1 : 0

  name          = "alias/${replace(var.name, ".", "-")}"
  target_key_id = aws_kms_key.archive[0].key_id
}

resource "aws_s3_bucket" "archive" {
  #checkov:skip=CKV2_AWS_62:Nobody waits for events; commits are found by listing.
  #checkov:skip=CKV_AWS_144:A second region is a choice of the user's; nothing here keeps them from replicating the bucket.
  bucket        = var.name
  force_destroy = false
  tags          = var.tags

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_ownership_controls" "archive" {
  bucket = aws_s3_bucket.archive.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_public_access_block" "archive" {
  bucket = aws_s3_bucket.archive.id

  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

# A sweep that was told the wrong thing deletes objects, not versions: what it took can be brought back for `noncurrent_days`.
resource "aws_s3_bucket_versioning" "archive" {
  bucket = aws_s3_bucket.archive.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "archive" {
  bucket = aws_s3_bucket.archive.id

  rule {
    # Else KMS is asked, and paid, for every object.
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = local.key_arn
    }
  }
}

resource "aws_s3_bucket_policy" "archive" {
  bucket = aws_s3_bucket.archive.id
  policy = templatefile("${path.module}/policies/bucket.json.tftpl", {
    bucket_arn  = aws_s3_bucket.archive.arn
    archive_arn = "${aws_s3_bucket.archive.arn}/${local.root}"
    key_arn     = local.key_arn
  })

  depends_on = [aws_s3_bucket_public_access_block.archive]
}

resource "aws_s3_bucket_logging" "archive" {
  count = var.access_logs == null ? 0 : 1

  bucket        = aws_s3_bucket.archive.id
  target_bucket = var.access_logs.bucket
  target_prefix = var.access_logs.prefix
}

locals {
  key_arn = var.kms_key == null ? aws_kms_key.archive[0].arn : var.kms_key.arn
}
