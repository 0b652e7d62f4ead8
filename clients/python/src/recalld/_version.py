"""The version of this client, which its releases and its user agent carry."""

__version__ = "0.1.0"
