"""The answers to requests, an API a module: from what the logs hold, without sockets and without waiting."""
