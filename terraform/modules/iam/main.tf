resource "aws_iam_policy" "archive" {
  for_each = local.policies

  name        = "${var.name}-${each.key}"
  description = "Archive of Kafka's log: ${each.key}"
  policy      = each.value
  tags        = var.tags
}

resource "aws_iam_role" "archive" {
  for_each = local.trust

  name                 = "${var.name}-${each.key}"
  description          = "Archive of Kafka's log: ${each.key}"
  assume_role_policy   = each.value
  max_session_duration = var.max_session_seconds
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags
}

resource "aws_iam_role_policy_attachment" "archive" {
  for_each = local.attachments

  role       = aws_iam_role.archive[each.value.role].name
  policy_arn = aws_iam_policy.archive[each.value.policy].arn
}

resource "aws_iam_role_policy" "archiver_keeps" {
  count = contains(keys(var.trusted), "archiver") ? 1 : 0

  name   = "delete-nothing"
  role   = aws_iam_role.archive["archiver"].id
  policy = local.archiver_keeps
}

resource "aws_iam_instance_profile" "archive" {
  for_each = var.instance_profiles

  name = "${var.name}-${each.key}"
  role = aws_iam_role.archive[each.key].name
  tags = var.tags
}
