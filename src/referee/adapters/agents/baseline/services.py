"""Databases and queues that a project may ask for: from Debian, and how each is started and asked whether it is up."""

from __future__ import annotations

from dataclasses import dataclass

#: A socket probe in plain bash: the port answers.
_PORT = "timeout 2 bash -c '</dev/tcp/127.0.0.1/{port}' 2>/dev/null"


@dataclass(frozen=True)
class Service:
    """One service: Debian packages, port, the start line (comes back at once), the words that betray the need."""

    name: str
    packages: tuple[str, ...]
    port: int
    start: str
    once: str = ""

    @property
    def probe(self) -> str:
        """A shell line with status 0 when it answers."""
        return _PORT.format(port=self.port)


_PG = (
    "V=$(ls /usr/lib/postgresql | sort -V | tail -n 1); D=/var/lib/postgresql/referee; "
    'if [ ! -d "$D" ]; then install -d -o postgres -g postgres "$D" && '
    'runuser -u postgres -- /usr/lib/postgresql/$V/bin/initdb -D "$D" -A trust -U postgres >/dev/null; fi; '
    'install -d -o postgres -g postgres /var/run/postgresql; rm -f "$D/postmaster.pid"; '
    'runuser -u postgres -- /usr/lib/postgresql/$V/bin/pg_ctl -D "$D" -l "$D/log" -w -o "-p 5432" start >/dev/null'
)
_MARIA = (
    "install -d -o mysql -g mysql /run/mysqld; (setsid mariadbd-safe --user=mysql --skip-log-error >/dev/null 2>&1 &)"
)
_MARIA_ONCE = (
    "mariadb -uroot -e \"CREATE USER IF NOT EXISTS 'root'@'127.0.0.1'; "
    "ALTER USER 'root'@'localhost' IDENTIFIED VIA mysql_native_password USING PASSWORD(''); "
    'CREATE DATABASE IF NOT EXISTS test;"'
)

SERVICES: dict[str, Service] = {
    service.name: service
    for service in (
        Service("redis", ("redis-server",), 6379, "redis-server --port 6379 --daemonize yes --save '' >/dev/null"),
        Service("postgresql", ("postgresql",), 5432, _PG, "runuser -u postgres -- createuser -s root; createdb root"),
        Service("mariadb", ("mariadb-server",), 3306, _MARIA, _MARIA_ONCE),
        Service("memcached", ("memcached",), 11211, "memcached -d -u nobody -l 127.0.0.1 -p 11211"),
        Service("rabbitmq", ("rabbitmq-server",), 5672, "(setsid rabbitmq-server >/dev/null 2>&1 &)"),
        Service("mosquitto", ("mosquitto",), 1883, "mosquitto -d -p 1883 >/dev/null 2>&1"),
        Service("beanstalkd", ("beanstalkd",), 11300, "(setsid beanstalkd -l 127.0.0.1 -p 11300 >/dev/null 2>&1 &)"),
        Service("slapd", ("slapd",), 389, "slapd -h ldap://127.0.0.1:389/"),
        Service("gearman", ("gearman-job-server",), 4730, "gearmand -d -L 127.0.0.1 -p 4730 -l /tmp/gearmand.log"),
    )
}

BY_PORT: dict[int, str] = {service.port: service.name for service in SERVICES.values()}
