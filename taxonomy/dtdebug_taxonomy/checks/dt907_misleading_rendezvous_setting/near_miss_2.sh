#!/bin/bash
# a web server
IP="$(hostname -I || echo localhost)"
curl -s "http://$IP:8080/health"
