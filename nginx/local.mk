# Installed: templates to share, scripts to libexec. render.sh learns there by one line where the templates are.
nobase_dist_pkgdata_DATA += \
	nginx/nginx.conf.in \
	nginx/http.conf.in \
	nginx/server.conf.in \
	nginx/answers.conf.in \
	nginx/edge.conf.in \
	nginx/edge_http.conf.in \
	nginx/edge_call.conf.in \
	nginx/edge_limits.conf.in \
	nginx/mcp.conf.in \
	nginx/call.conf.in \
	nginx/metadata.conf.in \
	nginx/oauth.conf.in \
	nginx/oauth_document.conf.in \
	nginx/oauth_pass.conf.in \
	nginx/page.conf.in \
	nginx/fastcgi.conf.in \
	nginx/types.conf.in
nobase_dist_pkglibexec_SCRIPTS += nginx/render.sh nginx/setup-nginx.sh nginx/setup/network.sh
nobase_dist_parts_DATA += nginx/setup/common.sh nginx/setup/settings.sh nginx/setup/site.sh nginx/setup/services.sh nginx/setup/existing.sh service/write_file.sh
INSTALLED_PLACES += nginx/render.sh:templates:$(pkgdatadir)/nginx

# The page at /, for "sandcgi setup nginx --page" and "make install"; needs node and npm, but in a tarball, which has it.
page:
	bash -c 'project=$(abs_top_srcdir) && source "$$project/nginx/setup/page.sh" && make_page "$(abs_builddir)/page"'
all-local:
	@test ! -d "$(srcdir)/nginx/page/made" || test -d page || $(MAKE) page
clean-local:
	rm -rf page

dist-page:
	$(MAKE) page && mkdir -p "$(distdir)/nginx/page" && cp -R page "$(distdir)/nginx/page/made" || \
		echo "the tarball has no page: it could not be made, see above" >&2

# Where it was made.
page_files = $$(cd page 2>/dev/null && find . -type f ! -name made-of)
install-data-local:
	@for file in $(page_files); do \
		$(MKDIR_P) "$(DESTDIR)$(pkgdatadir)/page/$${file%/*}" && \
			$(INSTALL_DATA) "page/$$file" "$(DESTDIR)$(pkgdatadir)/page/$$file" || exit 1; \
	done
uninstall-local:
	rm -rf "$(DESTDIR)$(pkgdatadir)/page"
.PHONY: page dist-page

EXTRA_DIST += nginx/cluster/stack.yml \
	nginx/cluster/kubernetes/edge.yaml nginx/cluster/kubernetes/node.yaml nginx/cluster/kubernetes/settings.yaml \
	nginx/cluster/nomad/edge.nomad.hcl nginx/cluster/nomad/node.nomad.hcl \
	nginx/setup/packages.sh nginx/setup/certificate.sh nginx/setup/build.sh nginx/setup/page.sh nginx/setup/engine.sh nginx/setup/first-run.sh \
	tests/nginx/run.py tests/nginx/checks.py tests/nginx/fake_fcgi.py tests/nginx/front.py \
	tests/nginx/groups_setup.py tests/nginx/groups_behind.py tests/nginx/groups_walk.py tests/nginx/groups_unhurt.py tests/nginx/groups_refused.py tests/nginx/groups_cluster.py tests/nginx/groups_mcp.py tests/nginx/groups_oauth.py tests/nginx/issuer.py tests/nginx/groups_files.py tests/nginx/test_start.sh \
	nginx/page/build.mjs nginx/page/package.json nginx/page/package-lock.json nginx/page/index.html nginx/page/style.css nginx/page/icon.svg \
	nginx/page/src
