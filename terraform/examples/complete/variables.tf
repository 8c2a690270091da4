variable "region" {
  description = "Where the bucket is."
  type        = string
  default     = "eu-central-1"
}

variable "bucket" {
  description = "The bucket's name, which nobody else in the world has."
  type        = string
}

variable "log_bucket" {
  description = "A bucket that takes S3's access logs; null for none."
  type        = string
  default     = null
}

variable "airflow_role_arn" {
  description = "The role that Airflow's workers have."
  type        = string
}

variable "spark_role_arn" {
  description = "The role that Spark's executors and driver have."
  type        = string
}

variable "alarms_to" {
  description = "Where alarms are mailed to."
  type        = string

  validation {
    condition     = strcontains(var.alarms_to, "@")
    error_message = "Give an address for mail."
  }
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = { service = "kafka-archive" }
}
