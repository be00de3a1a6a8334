# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# The certificate of start.sh's nginx: the one that NGINX_TLS_CERT names, else a self-signed one.

# Sets $cert, $cert_key, and the names that it may be for: $cert_hosts, of which check_certificate makes one $cert_host.
choose_certificate()
{
    cert=$(setting NGINX_TLS_CERT '') cert_key=$(setting NGINX_TLS_KEY '')
    cert_hosts=("$(public_host)")
    if [[ -z $cert$cert_key ]]; then
        cert=$state/tls/cert.pem cert_key=$state/tls/key.pem
        cert_hosts=(localhost "${cert_hosts[@]}")
    fi
    cert_host=${cert_hosts[0]}
    [[ -n $cert && -n $cert_key ]] || die "NGINX_TLS_CERT and NGINX_TLS_KEY belong together; set both in $env_file, or none"
    [[ $cert == /* && $cert_key == /* ]] || die "NGINX_TLS_CERT and NGINX_TLS_KEY must be absolute paths; correct them in $env_file"
}

ensure_certificate()
{
    choose_certificate
    [[ $cert != "$state"/* ]] || make_certificate
    check_certificate
}

make_certificate()
{
    [[ ! -f $cert || ! -f $cert_key ]] || return 0
    [[ ! -f $cert && ! -f $cert_key ]] || die "only one of $cert and $cert_key is there; put the other one back, or remove both for new ones"
    (umask 077 && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 825 -subj /CN=localhost \
        -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1' -keyout "$cert_key.new" -out "$cert.new" >>"$log_file" 2>&1) ||
        die "openssl could not make a certificate; see $log_file"
    chmod 0644 "$cert.new"
    mv -f "$cert_key.new" "$cert_key"
    mv -f "$cert.new" "$cert"
    say "  created a self-signed certificate: $cert"
}

# It and its key fit, it is valid now, and for one of the names. nginx would start with most of these faults, and every client
# refuse it.
check_certificate()
{
    local mend="renew it, or correct NGINX_TLS_CERT in $env_file" from to
    [[ $cert != "$state"/* ]] || mend="remove it and $cert_key for new ones, and call start.sh again"
    [[ -r $cert ]] || die "the certificate $cert cannot be read; $mend"
    [[ -r $cert_key ]] || die "the key $cert_key cannot be read; correct NGINX_TLS_KEY in $env_file, or its permissions"
    from=$(openssl x509 -in "$cert" -noout -startdate 2>/dev/null) || die "$cert is no certificate in PEM form; $mend"
    to=$(openssl x509 -in "$cert" -noout -enddate)
    (($(date -d "${from#*=}" +%s) <= $(date +%s))) || die "the certificate $cert is not valid before ${from#*=}; $mend, or set this machine's clock"
    (($(date -d "${to#*=}" +%s) > $(date +%s))) || die "the certificate $cert expired on ${to#*=}; $mend"
    [[ $(openssl x509 -in "$cert" -noout -pubkey) == "$(openssl pkey -in "$cert_key" -pubout 2>/dev/null)" ]] ||
        die "$cert_key is not the key of the certificate $cert; correct NGINX_TLS_KEY in $env_file"
    for cert_host in "${cert_hosts[@]}"; do
        ! certificate_is_for "$cert_host" || return 0
    done
    die "the certificate $cert is not for $cert_host, the host of PUBLIC_BASE_URL; $mend"
}

certificate_is_for()
{
    local how=-checkhost host=$1
    if [[ $host == \[*\] || $host =~ ^[0-9.]+$ ]]; then
        how=-checkip host=${host//[\[\]]/}
    fi
    [[ $(openssl x509 -in "$cert" -noout "$how" "$host") == *"does match"* ]]
}
