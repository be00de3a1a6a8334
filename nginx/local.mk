EXTRA_DIST += nginx/README.md nginx/render.sh nginx/token.sh \
	nginx/nginx.conf.in nginx/http.conf.in nginx/server.conf.in nginx/mcp.conf.in nginx/fastcgi.conf.in nginx/types.conf.in \
	nginx/setup/common.sh nginx/setup/settings.sh nginx/setup/packages.sh nginx/setup/build.sh nginx/setup/engine.sh nginx/setup/services.sh \
	nginx/setup/network.sh \
	nginx/setup/first-run.sh \
	tests/nginx/run.py tests/nginx/checks.py tests/nginx/fake_fcgi.py tests/nginx/front.py \
	tests/nginx/groups_setup.py tests/nginx/groups_mcp.py tests/nginx/groups_files.py tests/nginx/test_start.sh
