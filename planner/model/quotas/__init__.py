"""What an account may run: vCPU quotas, and the VMs that they leave at sites."""
