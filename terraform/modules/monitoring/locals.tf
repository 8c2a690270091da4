locals {
  # S3 counts nothing of a bucket's requests until a filter is made; it has an id, which is a dimension of what it counts.
  filter_id = "archive"

  s3_errors = {
    s3-server-errors = {
      metric_name = "5xxErrors"
      description = "S3 or what lies before it fails. Every call is tried again; copies and reads are slow meanwhile, nothing is lost."
      threshold   = var.server_errors_percent_max
    }
    s3-client-errors = {
      metric_name = "4xxErrors"
      description = "S3 refuses most requests. `tiering doctor` run with the same role says which right is missing."
      threshold   = var.client_errors_percent_max
    }
  }
}
