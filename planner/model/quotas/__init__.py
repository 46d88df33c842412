"""vCPU quotas of an account, and the VMs that they leave at sites."""
