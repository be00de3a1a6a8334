# Units and what goes with them. Their @NAME@ become the places of "make install".
systemd_templates = \
	service/sandcgi.service.in \
	service/sandcgi-doctor.service.in \
	service/sandcgi-network.service.in \
	service/sandcgi-runners.service.in
nodist_systemdsystemunit_DATA = \
	service/sandcgi.service \
	service/sandcgi-doctor.service \
	service/sandcgi-network.service \
	service/sandcgi-runners.service
dist_systemdsystemunit_DATA = \
	service/sandcgi-doctor.timer \
	service/sandcgi.socket \
	service/sandcgi-hub.socket
sysusersdir = $(prefix)/lib/sysusers.d
tmpfilesdir = $(prefix)/lib/tmpfiles.d
dist_sysusers_DATA = service/sysusers.d/sandcgi.conf
dist_tmpfiles_DATA = service/tmpfiles.d/sandcgi.conf
dist_pkgdata_DATA = service/sandcgi.conf
nobase_dist_pkglibexec_SCRIPTS += service/settings.sh service/cluster.sh
INSTALLED_PLACES += service/settings.sh:templates:$(pkgdatadir)

$(nodist_systemdsystemunit_DATA): Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	sed -e 's|@bindir[@]|$(bindir)|g' -e 's|@pkglibexecdir[@]|$(pkglibexecdir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(srcdir)/$@.in >$@.new && mv $@.new $@
service/sandcgi.service: service/sandcgi.service.in
service/sandcgi-doctor.service: service/sandcgi-doctor.service.in
service/sandcgi-network.service: service/sandcgi-network.service.in
service/sandcgi-runners.service: service/sandcgi-runners.service.in

examplesdir = $(docdir)/examples
dist_examples_DATA = .env.example service/sandcgi.logrotate nginx/fail2ban.conf

# A release, from a commit without changes: tarball, packages, archives of images, parts list, checksums. RELEASE_PARTS="tarball packages": only these.
release:
	$(srcdir)/service/release/release.sh $(abs_builddir) $(RELEASE_PARTS)
.PHONY: release

EXTRA_DIST += service/release/version.sh service/release/version service/release/release.sh service/release/sbom.sh service/release/cut.sh
EXTRA_DIST += $(systemd_templates) service/container.sh service/edge.sh Dockerfile .dockerignore docker-compose.yml docker-compose.override.yml \
	docker-compose.cloudflare.yml \
	debian/changelog debian/control debian/copyright debian/postinst debian/postrm debian/rules debian/sandcgi.lintian-overrides \
	debian/source/format
CLEANFILES += $(nodist_systemdsystemunit_DATA)
