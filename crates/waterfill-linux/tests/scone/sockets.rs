//! Datagrams of sockets through the daemon's element.
