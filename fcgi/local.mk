bin_PROGRAMS += sandcgi
sandcgi_SOURCES = \
	fcgi/account.c fcgi/account.h \
	fcgi/app.c fcgi/app.h \
	fcgi/broker_config.c fcgi/broker_config.h \
	fcgi/cgi.c fcgi/cgi.h \
	fcgi/fastcgi.c fcgi/fastcgi.h \
	fcgi/http.c fcgi/http.h \
	fcgi/listen.c fcgi/listen.h \
	fcgi/main.c \
	fcgi/master.c fcgi/master.h \
	fcgi/private_broker.c fcgi/private_broker.h \
	fcgi/settings.c fcgi/settings.h \
	fcgi/stdio.c fcgi/stdio.h
sandcgi_CPPFLAGS = $(AM_CPPFLAGS) $(FCGI_CFLAGS)
sandcgi_LDADD = $(LDADD) $(FCGI_LIBS)
