variable "name" {
  description = "What the names of the alarms start with."
  type        = string
  default     = "kafka-archive"

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]{1,64}$", var.name))
    error_message = "Give 1 to 64 letters, digits and . _ -."
  }
}

variable "bucket" {
  description = "The archive's bucket."
  type        = string
}

variable "prefix" {
  description = "Where the archive lies in the bucket, as in s3://bucket/prefix; empty for the whole bucket."
  type        = string
  default     = ""

  validation {
    condition     = !startswith(var.prefix, "/") && !endswith(var.prefix, "/")
    error_message = "A prefix has no slashes around it."
  }
}

variable "alarm_actions" {
  description = "What is told when an alarm goes off and when it is over, such as the ARN of an SNS topic."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.alarm_actions : startswith(arn, "arn:")])
    error_message = "Give ARNs, such as that of an SNS topic."
  }
}

variable "server_errors_percent_max" {
  description = "How much of S3's answers in five minutes may be 5xx. Each is tried again, so a few delay nothing."
  type        = number
  default     = 1

  validation {
    condition     = var.server_errors_percent_max >= 0 && var.server_errors_percent_max < 100
    error_message = "Give a percentage from 0 to below 100."
  }
}

variable "client_errors_percent_max" {
  description = "How much of S3's answers in five minutes may be 4xx. Some are in order: 404 for a version that is not there yet, 412 for a commit that another writer won. Lost rights make it nearly 100."
  type        = number
  default     = 50

  validation {
    condition     = var.client_errors_percent_max >= 0 && var.client_errors_percent_max < 100
    error_message = "Give a percentage from 0 to below 100."
  }
}

variable "namespace" {
  description = "The CloudWatch namespace that the service's own metrics are sent to, by the CloudWatch agent's Prometheus receiver or an OpenTelemetry collector."
  type        = string
  default     = "KafkaTiering"

  validation {
    condition     = can(regex("^[A-Za-z0-9._/#:-]{1,255}$", var.namespace)) && !startswith(var.namespace, "AWS/")
    error_message = "Give a namespace of your own; those that start with AWS/ are Amazon's."
  }
}

variable "metrics" {
  description = "Alarms on the service's own metrics, by name: the metric as your collector names it, its dimensions, and what it may reach. Where silence means that nothing is copied any more, set `alarms_if_silent`."
  type = map(object({
    metric_name      = string
    description      = string
    threshold        = number
    statistic        = optional(string, "Maximum")
    period_seconds   = optional(number, 300)
    periods          = optional(number, 3)
    dimensions       = optional(map(string), {})
    alarms_if_silent = optional(bool, false)
  }))
  nullable = false
  default = {
    copy-lag = {
      metric_name      = "kafka_server_brokertopicmetrics_remotecopylagbytes"
      description      = "So many bytes of inactive segments are not archived yet. Is the agent or the schedule running, and is its byte limit below what is produced?"
      threshold        = 10737418240
      periods          = 6
      alarms_if_silent = true
    }
    offsets-lost = {
      metric_name = "kafka_tiering_lost_offsets_total"
      description = "Offsets left their brokers before they were archived. `tiering status` says which; see Offsets were lost in the operations page."
      threshold   = 0
      periods     = 1
    }
    store-failing = {
      metric_name = "kafka_tiering_store_failing"
      description = "The store answers nobody, and nothing is archived. `tiering status` says since when, `tiering doctor` why."
      threshold   = 0
      periods     = 1
    }
    delete-lag = {
      metric_name = "kafka_server_brokertopicmetrics_remotedeletelagbytes"
      description = "Bytes that expired and are still stored. Does retention run, and does a pin cover them?"
      threshold   = 107374182400
      periods     = 12
    }
    copy-errors = {
      metric_name = "kafka_server_brokertopicmetrics_remotecopyerrors_total"
      description = "Copies fail. `tiering offload --dry-run` and `tiering doctor` say why."
      threshold   = 0
    }
    fetch-errors = {
      metric_name = "kafka_server_brokertopicmetrics_remotefetcherrors_total"
      description = "Reads of the archive fail. `tiering scrub` says whether it is whole."
      threshold   = 0
    }
    delete-errors = {
      metric_name = "kafka_server_brokertopicmetrics_remotedeleteerrors_total"
      description = "Deletions fail. No data is lost, but the storage is still paid for."
      threshold   = 0
    }
  }

  validation {
    condition     = alltrue([for m in values(var.metrics) : contains(["Average", "Maximum", "Minimum", "SampleCount", "Sum"], m.statistic)])
    error_message = "A statistic is Average, Maximum, Minimum, SampleCount or Sum."
  }

  validation {
    condition     = alltrue([for m in values(var.metrics) : m.period_seconds % 60 == 0 && m.period_seconds >= 60 && m.periods >= 1])
    error_message = "Give whole minutes as period_seconds, and at least one period."
  }

  validation {
    condition     = alltrue([for m in values(var.metrics) : m.period_seconds * m.periods <= 86400])
    error_message = "CloudWatch looks back a day at most: period_seconds times periods is at most 86400."
  }
}

variable "tags" {
  description = "Tags of everything that this module makes."
  type        = map(string)
  default     = {}
  nullable    = false
}
