output "name" {
  description = "The bucket's name."
  value       = aws_s3_bucket.archive.id
}

output "arn" {
  description = "The bucket's ARN."
  value       = aws_s3_bucket.archive.arn
}

output "prefix" {
  description = "Where the archive lies in it."
  value       = var.prefix
}

output "key_arn" {
  description = "The KMS key that encrypts the bucket."
  value       = local.key_arn
}

output "archive_url" {
  description = "What --archive takes."
  value       = "s3://${aws_s3_bucket.archive.id}/${var.prefix}"
}
