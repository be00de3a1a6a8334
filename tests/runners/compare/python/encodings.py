# ways: started preloaded
import locale
import sys

print(sys.flags.utf8_mode, locale.getpreferredencoding(), locale.getlocale(), locale.setlocale(locale.LC_ALL))
print(locale.localeconv()["decimal_point"], locale.getlocale(locale.LC_CTYPE), open("f", "w").encoding)
print("ä".encode("utf-16-le"), "ä".encode("cp1252"), b"\xe4".decode("latin-1"), "é".encode("idna"))
