"""The user's own data: folders, manifests, arrays, and any `torch.utils.data.Dataset`."""
