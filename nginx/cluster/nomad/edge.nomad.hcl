# The edges. Nomad's own template keeps the list of nodes, and "sandcgi nodes --from file" renders it for nginx.
variable "public_base_url" {
  type = string
}

job "sandcgi-edge" {
  datacenters = ["*"]

  group "edge" {
    count = 2

    constraint {
      distinct_hosts = true
    }

    network {
      port "http" {
        static = 80
        to     = 8080
      }
    }

    service {
      name     = "sandcgi-edge"
      port     = "http"
      provider = "nomad"

      check {
        type     = "http"
        path     = "/healthz"
        interval = "5s"
        timeout  = "5s"
      }
    }

    task "edge" {
      driver       = "docker"
      kill_signal  = "SIGQUIT"
      kill_timeout = "7m"

      config {
        image           = "sandcgi-edge"
        init            = true
        ports           = ["http"]
        readonly_rootfs = true
        cap_drop        = ["all"]
        cap_add         = ["setuid", "setgid", "chown", "dac_override"]
        # A node that falls silent in mid-call is noticed after some six seconds.
        sysctl = {
          "net.ipv4.tcp_keepalive_time"   = "3"
          "net.ipv4.tcp_keepalive_intvl"  = "1"
          "net.ipv4.tcp_keepalive_probes" = "3"
          "net.ipv4.tcp_retries2"         = "5"
        }
        mount {
          type   = "tmpfs"
          target = "/tmp"
        }
        mount {
          type   = "tmpfs"
          target = "/etc/sandcgi"
        }
        mount {
          type   = "tmpfs"
          target = "/var/log/nginx"
        }
      }

      env {
        PUBLIC_BASE_URL = var.public_base_url
        EDGE_NODES      = "--from file --file ${NOMAD_TASK_DIR}/nodes"
        SECRETS_DIR     = "${NOMAD_SECRETS_DIR}/sandcgi"
      }

      # One line for each machine that has the service, whether its check passes or not. The machines must be called as
      # nodes may be, [a-z0-9]{1,16}: this template cannot make a node's name of another one.
      template {
        data          = <<-END
          {{- range nomadService "sandcgi-front" }}
          {{ index .Tags 0 }} {{ .Address }}:{{ .Port }}
          {{- end }}
        END
        destination   = "local/nodes"
        change_mode   = "noop" # "sandcgi nodes" sees it within two seconds
      }
      template {
        data        = "{{ with nomadVar \"nomad/jobs/sandcgi\" }}{{ .MCP_API_TOKEN }}{{ end }}"
        destination = "secrets/sandcgi/MCP_API_TOKEN"
        perms       = "400"
      }
      template {
        data        = "{{ with nomadVar \"nomad/jobs/sandcgi\" }}{{ .SANDCGI_EDGE_SECRET }}{{ end }}"
        destination = "secrets/sandcgi/SANDCGI_EDGE_SECRET"
        perms       = "400"
      }

      resources {
        cpu    = 500
        memory = 256
      }
    }
  }
}
