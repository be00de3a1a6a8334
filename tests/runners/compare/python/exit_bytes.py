raise SystemExit(b"bytes")
