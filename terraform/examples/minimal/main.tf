# A bucket, and roles for instances: brokers that archive, and one host that retains and sweeps.

provider "aws" {
  region = var.region
}

variable "region" {
  description = "Where the bucket is."
  type        = string
  default     = "eu-central-1"
}

variable "bucket" {
  description = "The bucket's name, which nobody else in the world has."
  type        = string
}

module "bucket" {
  source = "../../modules/bucket"

  name = var.bucket
}

module "iam" {
  source = "../../modules/iam"

  bucket_arn     = module.bucket.arn
  bucket_key_arn = module.bucket.key_arn
  trusted = {
    archiver = { services = ["ec2.amazonaws.com"] }
    sweeper  = { services = ["ec2.amazonaws.com"] }
  }
  instance_profiles = ["archiver", "sweeper"]
}

output "archive_url" {
  description = "What --archive takes."
  value       = module.bucket.archive_url
}

output "instance_profile_names" {
  description = "What the instances get."
  value       = module.iam.instance_profile_names
}
