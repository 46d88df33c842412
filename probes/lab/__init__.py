"""The lab: a wide-area network of emulated datacenters on one Linux machine.

Every datacenter is a network namespace with a real sshd and whatever tools the machine has;
a few forked processes carry the packets between them and make distance out of waiting. See
``docs/lab.md`` for a picture and for what it can and can't do.
"""
