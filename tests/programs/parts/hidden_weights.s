# Assembly without a file symbol: its local symbols stand by the object before it.
	.section .rodata
	.globl weights
	.type weights,@object
	.size weights,64
weights:
	.rept 8
	.double 0.125
	.endr
	.text
	.globl twice
twice:
	leal 1(%rdi,%rdi), %eax
	ret
	.section .note.GNU-stack,"",@progbits
