"""The child that `server` starts: Prefect's API until standard input closes."""

import os
import signal
import sys
import threading

__all__ = ["main"]


def _stop_with_parent() -> None:
    """End this process once its parent, which holds the other end of standard input, is gone."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main(port: int) -> None:
    """Serve Prefect's API on the loopback interface.

    Parameters
    ----------
    port
        Port to listen on.
    """
    import uvicorn

    threading.Thread(target=_stop_with_parent, daemon=True).start()
    uvicorn.run(
        "prefect.server.api.server:create_app",
        factory=True,
        host="127.0.0.1",
        port=port,
        log_level="error",
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
