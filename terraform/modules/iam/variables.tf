variable "name" {
  description = "What the names of roles and policies start with."
  type        = string
  default     = "kafka-archive"

  validation {
    condition     = can(regex("^[A-Za-z0-9+=,.@_-]{1,40}$", var.name))
    error_message = "Give 1 to 40 letters, digits and + = , . @ _ -, so that the longest name made of it is one for IAM."
  }
}

variable "bucket_arn" {
  description = "The ARN of the archive's bucket."
  type        = string

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:s3:::[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket_arn))
    error_message = "Give a bucket's ARN, such as arn:aws:s3:::archive."
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

variable "bucket_key_arn" {
  description = "The KMS key that encrypts the bucket."
  type        = string

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", var.bucket_key_arn))
    error_message = "Give the ARN of a key, not of an alias: IAM compares keys."
  }
}

variable "data_key_arns" {
  description = "KMS keys that wrap the data keys of segments (--encrypt --keys aws-kms://…): the current one and those before it."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([
      for arn in var.data_key_arns : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", arn))
    ])
    error_message = "Give ARNs of keys, not of aliases: IAM compares keys."
  }
}

variable "trusted" {
  description = "Who takes each of the roles archiver, sweeper and reader: ARNs of AWS principals, and services such as ec2.amazonaws.com, ecs-tasks.amazonaws.com or pods.eks.amazonaws.com. A role that is not named here is not made."
  type = map(object({
    aws      = optional(list(string), [])
    services = optional(list(string), [])
  }))
  nullable = false

  validation {
    condition     = length(setsubtract(keys(var.trusted), ["archiver", "sweeper", "reader"])) == 0
    error_message = "The roles are archiver, sweeper and reader."
  }

  validation {
    condition     = alltrue([for who in values(var.trusted) : length(who.aws) + length(who.services) > 0])
    error_message = "Name at least one principal or service for each role."
  }

  validation {
    condition     = alltrue([for who in values(var.trusted) : alltrue([for arn in who.aws : can(regex("^arn:aws[a-z-]*:(iam|sts)::[0-9]{12}:", arn))])])
    error_message = "Give principals by ARN; \"*\" would let everybody take the role."
  }
}

variable "readers_pin" {
  description = "Whether readers may make retention wait for them (objects below pins/). Without it a read that outlasts the delay of a deletion fails."
  type        = bool
  default     = false
}

variable "instance_profiles" {
  description = "Roles that EC2 instances take, such as archiver for brokers with a sidecar; trust ec2.amazonaws.com in these."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(setsubtract(var.instance_profiles, ["archiver", "sweeper", "reader"])) == 0
    error_message = "The roles are archiver, sweeper and reader."
  }
}

variable "permissions_boundary_arn" {
  description = "A permissions boundary for the roles; null for none."
  type        = string
  default     = null
}

variable "max_session_seconds" {
  description = "How long one session of a role lasts at most; a backfill should not outlast it."
  type        = number
  default     = 3600

  validation {
    condition     = var.max_session_seconds >= 3600 && var.max_session_seconds <= 43200
    error_message = "IAM takes 3600 to 43200 seconds."
  }
}

variable "tags" {
  description = "Tags of everything that this module makes."
  type        = map(string)
  default     = {}
  nullable    = false
}
