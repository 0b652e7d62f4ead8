"""The recalld sidecar: a gRPC server around the Rust core, and the `recalld` command.

Rust answers every call that agents make on each step; Python composes, configures and observes. `app.py` puts
the parts together and is the place to start reading.
"""

from typing import Final

__version__: Final = "0.1.0"
"""Version of the sidecar, the same as that of the distribution."""
