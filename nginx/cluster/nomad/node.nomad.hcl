# The nodes of a cluster: a system job on the clients whose meta says sandcgi = "true". Nomad stops a system job's allocation
# before it starts the next one: nginx/cluster.md says how to update without a refused call.
variable "public_base_url" {
  type = string
}

variable "data" {
  type    = string
  default = "/var/lib/sandcgi/sandboxes"
}

job "sandcgi" {
  type        = "system"
  datacenters = ["*"]

  constraint {
    attribute = "${meta.sandcgi}"
    value     = "true"
  }

  update {
    max_parallel     = 1
    min_healthy_time = "20s"
  }

  group "node" {
    network {
      mode = "host"
      port "http" {
        static = 8080
      }
    }

    service {
      name     = "sandcgi-front"
      port     = "http"
      provider = "nomad"
      tags     = ["${node.unique.name}"] # for the edge's list

      check {
        type     = "http"
        path     = "/readyz"
        interval = "5s"
        timeout  = "5s"
      }
    }

    task "sandcgi" {
      driver       = "docker"
      kill_timeout = "5m20s" # SANDBOX_TIMEOUT_MAX; the client's max_kill_timeout must allow it

      config {
        image            = "sandcgi"
        init             = true
        readonly_rootfs  = true
        cap_drop         = ["all"]
        cap_add          = ["chown", "fowner", "dac_override", "setuid", "setgid", "kill"]
        volumes          = [
          "/var/lib/sandcgi/etc:/etc/sandcgi",
          "/run/sandcgi:/run/sandcgi",
          "${var.data}:/var/lib/sandcgi/sandboxes",
          "/var/run/docker.sock:/var/run/docker.sock",
        ]
        mount {
          type   = "tmpfs"
          target = "/tmp"
        }
      }

      env {
        PUBLIC_BASE_URL   = var.public_base_url
        SANDBOX_HOST_PATH = var.data
        MACHINE_NAME      = "${node.unique.name}"
        REAL_IP_HEADER    = "X-Forwarded-For" # the edges, on a private network, say there who asks
        SECRETS_DIR       = "${NOMAD_SECRETS_DIR}/sandcgi"
      }

      # nomad var put nomad/jobs/sandcgi FILE_SECRET=… MCP_API_TOKEN=… SANDCGI_EDGE_SECRET=…
      template {
        data        = "{{ with nomadVar \"nomad/jobs/sandcgi\" }}{{ .FILE_SECRET }}{{ end }}"
        destination = "secrets/sandcgi/FILE_SECRET"
        perms       = "400"
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
        memory = 512
      }
    }

    task "front" {
      driver       = "docker"
      kill_signal  = "SIGQUIT"
      kill_timeout = "7m"

      config {
        image           = "sandcgi-nginx"
        network_mode    = "host"
        readonly_rootfs = true
        cap_drop        = ["all"]
        cap_add         = ["setuid", "setgid", "chown"]
        volumes         = [
          "/var/lib/sandcgi/etc:/etc/sandcgi:ro",
          "/run/sandcgi:/run/sandcgi",
          "${var.data}:/var/lib/sandcgi/sandboxes:ro",
        ]
        mount {
          type   = "tmpfs"
          target = "/tmp"
        }
        mount {
          type   = "tmpfs"
          target = "/var/log/nginx"
        }
      }

      resources {
        cpu    = 200
        memory = 128
      }
    }
  }
}
