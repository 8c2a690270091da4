# What is worked out from the variables alone: it can be looked at by `terraform console` without an account.
locals {
  root = var.prefix == "" ? "" : "${var.prefix}/"
}
