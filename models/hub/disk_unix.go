//go:build unix

package hub

import "syscall"

var diskFull = []error{syscall.ENOSPC, syscall.EDQUOT}
