variable "name" {
  description = "The bucket's name. It holds archives and nothing else: every object below `prefix` has to be put with If-None-Match."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.name)) && !strcontains(var.name, "..")
    error_message = "A bucket's name has 3 to 63 small letters, digits, hyphens and dots, and starts and ends with a letter or a digit."
  }
}

variable "prefix" {
  description = "Where the archive lies in the bucket, as in s3://bucket/prefix; without slashes around it, empty for the whole bucket."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([A-Za-z0-9._=-]+(/[A-Za-z0-9._=-]+)*)?$", var.prefix))
    error_message = "A prefix is made of letters, digits and . _ = -, with single slashes inside it and none around it."
  }
}

variable "kms_key" {
  description = "The KMS key that encrypts the bucket, of the bucket's own region; null makes one that is turned over every year."
  type = object({
    arn = string
  })
  default = null

  # An object, so that a key which is made in the same run, and has no ARN yet, is not taken for none.
  validation {
    condition     = var.kms_key == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", var.kms_key.arn))
    error_message = "Give the ARN of a key: S3 looks an alias up in the account of the caller, which may be another account."
  }
}

variable "noncurrent_days" {
  description = "Days for which what was deleted can be brought back: that long S3 keeps, and charges for, versions that are not current."
  type        = number
  default     = 30

  validation {
    condition     = var.noncurrent_days >= 1 && floor(var.noncurrent_days) == var.noncurrent_days
    error_message = "Give whole days, 1 or more."
  }
}

variable "abort_uploads_days" {
  description = "Days after which the parts of a multipart upload that was never completed are freed; longer than any upload takes."
  type        = number
  default     = 7

  validation {
    condition     = var.abort_uploads_days >= 1 && floor(var.abort_uploads_days) == var.abort_uploads_days
    error_message = "Give whole days, 1 or more."
  }
}

variable "transitions" {
  description = "Cheaper storage classes for large objects, and the days after which they move there. Only such that are read at once."
  type = list(object({
    days          = number
    storage_class = string
  }))
  default  = []
  nullable = false

  validation {
    # GLACIER and DEEP_ARCHIVE have to be restored before they are read: a fetch of an old offset would fail for hours.
    condition = alltrue([
      for t in var.transitions : contains(["STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR"], t.storage_class)
    ])
    error_message = "Storage classes are STANDARD_IA, ONEZONE_IA, INTELLIGENT_TIERING and GLACIER_IR; others are not read at once."
  }

  validation {
    condition     = alltrue([for t in var.transitions : t.days >= 0 && floor(t.days) == t.days])
    error_message = "Give whole days, 0 or more."
  }

  validation {
    condition     = alltrue([for t in var.transitions : t.days >= 30 if endswith(t.storage_class, "_IA")])
    error_message = "S3 moves nothing to STANDARD_IA or ONEZONE_IA before it is 30 days old."
  }
}

variable "transition_bytes_min" {
  description = "Objects of no more bytes never move to another storage class. No manifest has as many, so none moves."
  type        = number
  default     = 16777216

  validation {
    condition     = var.transition_bytes_min >= 16777216 && floor(var.transition_bytes_min) == var.transition_bytes_min
    error_message = "Give 16777216 or more: the longest manifest, one of encoded segments, has 9 million bytes."
  }
}

variable "access_logs" {
  description = "The bucket that takes S3's access logs of this one, and what their names start with; null for none."
  type = object({
    bucket = string
    prefix = optional(string, "")
  })
  default = null
}

variable "tags" {
  description = "Tags of everything that this module makes."
  type        = map(string)
  default     = {}
  nullable    = false
}
