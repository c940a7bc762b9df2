"""SAM inside other people's training loops: Lightning and Transformers. Nothing else imports this package."""
