//go:build unix

package hub

import "syscall"

// diskFull lists the errors of a full disk.
var diskFull = []error{syscall.ENOSPC, syscall.EDQUOT}
