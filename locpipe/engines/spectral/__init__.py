"""The engine ``spectral``: masses and means of smooth kernels by nonuniform Fourier transforms.

A sum over keys ``f(x) = sum_j w_j K(x - y_j)`` is a convolution, so its Fourier coefficients are
those of the keys, ``F_k = sum_j w_j exp(-i k y_j)``, times the kernel's, ``K_k``.  Both sums run in
time near linear in the rows: type 1 of a nonuniform transform makes ``F``, type 2 evaluates
``f(x) = sum_k K_k F_k exp(i k x)`` (Greengard and Lee 2004; Barnett, Magland and af Klinteberg
2019).  Only ``F`` belongs to the keys, and it adds up over blocks of them.

What is wrong with an answer, and what is done about it
-------------------------------------------------------
Let ``W = sum_j |w_j|`` and ``S = sum_k |K_k F_k|``; S is between the largest mass anywhere and W,
and mostly close to the former.

1. *Modes left out.*  ``|F_k| <= W``, so they are worth at most ``W sum |K_k|`` over the modes
   beyond the grid, a Gaussian tail: ``2 d erfc(X / sqrt 2) W`` with X the highest frequency, in
   units of one over the bandwidth.
2. *Wrap-around.*  The sum is periodic.  A query in the padded box is at least T bandwidths from
   the nearest image of any key, so images weigh at most ``3 d exp(-T^2 / 2) W``.
   Both are at most ``tail W``; the grid is laid out so that this is below ``tolerance S / 4``.
3. *The transforms.*  Type 2 answers ``sum_k g_k exp(i k x) (1 + r_k(x))`` with
   ``|r_k| <= C eps``, hence an error of at most ``C eps S``.  Type 1 is its adjoint: key j
   answers to a kernel ``K + eps E``, where E falls off like K itself at a few bandwidths, so its
   error is ``eps sum_j w_j |E(x - y_j)|``, a smooth mass again and at most about ``eps S``.
   Measured over lattices, clumps, single points, lines, outliers and smooth data in one to three
   features, the error of both together is at most ``0.1 eps S`` at eps = 1e-14 where the mass is
   below ``S / 1000``, and ``0.02 eps S`` at looser eps.  The engine relies on ``0.5 eps S``.
4. *Rounding.*  A coordinate is rounded at ``2^-53`` of the box of L bandwidths, which moves a
   weight by at most ``u L 2^-51`` of itself at u bandwidths; sums of n terms in a cell lose up to
   ``n 2^-53`` of themselves.  Both are relative to what is nearby, and `refusal` bounds them.

So a mass is right to rtol wherever ``mass rtol`` exceeds ``0.5 eps S + tail W``.  Other rows are
*doubtful*: `evaluate` names them, and they are computed pair by pair.  Queries outside the padded
box are doubtful too; the padding ends where their mass could not have been trusted in any case.

Values ride with weights, two real sums in the real and the imaginary part of one transform, each
scaled to the same sum of sizes.  An error of the mean splits in two,
``|err mean| <= err_moment / mass + |mean| err_mass / mass``.  The measure of a mean is the local
mean of ``|v|``: where values have one sign this is the mean itself; where they have not,
``|moment|`` bounds it from below, and at the few queries where that does not suffice the sum of
``w |v|``, kept beside the others over some of the keys, is evaluated.
"""

from locpipe.engines.spectral.engine import Spectral

__all__ = ["Spectral"]
