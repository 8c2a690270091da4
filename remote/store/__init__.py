"""Object stores behind one protocol, `remote.store.api`; `remote.store.open` opens one by its URL."""
