# The policies, from the variables alone: `terraform console` shows them without an account, and any other tool can fill the
# templates in, since they have nothing but names in ${…}.
#
# Listing is granted without a condition on s3:prefix. With one, S3 answers 403 instead of 404 for an object that is not there
# (such a request has no prefix, so the condition does not hold), and the protocol lives by telling the two apart. So who reads
# one archive of a bucket sees the names of others in it; give an archive a bucket of its own.
locals {
  root = var.prefix == "" ? "" : "${var.prefix}/"

  names = {
    bucket_arn     = var.bucket_arn
    archive_arn    = "${var.bucket_arn}/${local.root}"
    bucket_key_arn = var.bucket_key_arn
    data_key_arns  = jsonencode(var.data_key_arns)
  }

  wraps = length(var.data_key_arns) > 0

  # By the name of the policy; each stands alone, so that a role of your own (an agent's) may have several.
  policies = merge(
    {
      archiver = templatefile("${path.module}/policies/archiver.json.tftpl", local.names)
      sweeper  = templatefile("${path.module}/policies/sweeper.json.tftpl", local.names)
      reader   = templatefile("${path.module}/policies/reader.json.tftpl", local.names)
    },
    var.readers_pin ? { pins = templatefile("${path.module}/policies/pins.json.tftpl", local.names) } : {},
    local.wraps ? {
      wrap   = templatefile("${path.module}/policies/wrap.json.tftpl", local.names)
      unwrap = templatefile("${path.module}/policies/unwrap.json.tftpl", local.names)
    } : {},
  )

  # Each probe is deleted by the process that made it, and a topic may be named like one. This denies; so it is no policy to combine.
  archiver_keeps = templatefile("${path.module}/policies/archiver_keeps.json.tftpl", local.names)

  # The sweep works on manifests and pages, which are not encrypted by data keys.
  policies_of = {
    archiver = concat(["archiver"], local.wraps ? ["wrap", "unwrap"] : [])
    sweeper  = ["sweeper"]
    reader   = concat(["reader"], var.readers_pin ? ["pins"] : [], local.wraps ? ["unwrap"] : [])
  }

  attachments = merge([
    for role in keys(var.trusted) : { for policy in local.policies_of[role] : "${role}-${policy}" => { role = role, policy = policy } }
  ]...)

  trust = {
    for role, who in var.trusted : role => templatefile("${path.module}/policies/trust.json.tftpl", {
      principals = jsonencode(merge(
        length(who.aws) > 0 ? { AWS = who.aws } : {},
        length(who.services) > 0 ? { Service = who.services } : {},
      ))
    })
  }
}
