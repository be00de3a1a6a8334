# fresh: ^token (\S+)
# fresh: ^openssl (\S+)
import secrets
import ssl

print("token", secrets.token_hex(16))
print("openssl", ssl.RAND_bytes(16).hex())
