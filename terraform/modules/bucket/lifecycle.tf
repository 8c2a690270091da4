# No rule here deletes what is current: only retention and the sweep know what nobody needs any more.
resource "aws_s3_bucket_lifecycle_configuration" "archive" {
  #checkov:skip=CKV_AWS_300:The first rule does; the dynamic one hides it from checkov.
  bucket = aws_s3_bucket.archive.id

  rule {
    id     = "free-broken-off-uploads"
    status = "Enabled"

    filter {}

    abort_incomplete_multipart_upload {
      days_after_initiation = var.abort_uploads_days
    }
  }

  rule {
    id     = "end-what-was-deleted"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = var.noncurrent_days
    }

    # Removes the marks that deletions leave, once no version lies under them. It touches no object.
    expiration {
      expired_object_delete_marker = true
    }
  }

  # What tells segments from manifests: not a prefix, for S3's end before the topic (`<root>/<topic>/<id>/<partition>/segments/`
  # has names in its middle), and not a tag, for nothing of ours is tagged. The size does: a manifest is bounded, and what is
  # saved on small objects is less than what moving them costs. Aux objects stay, too: a reader asks for them first.
  dynamic "rule" {
    for_each = length(var.transitions) == 0 ? [] : [var.transitions]

    content {
      id     = "move-large-segments"
      status = "Enabled"

      filter {
        object_size_greater_than = var.transition_bytes_min
      }

      dynamic "transition" {
        for_each = rule.value

        content {
          days          = transition.value.days
          storage_class = transition.value.storage_class
        }
      }
    }
  }

  depends_on = [aws_s3_bucket_versioning.archive]
}
