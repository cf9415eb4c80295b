"""Certificates of brokers, made by the authority of their network.

Owns the signing and the new broker's key. Must not know why somebody gets one. Invariant: a
certificate is made out to a broker's name, is no authority itself, and holds as long as its
authority does; a private key leaves the machine where it was made only as part of a grant that
says so.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes


class AuthorityError(Exception):
    """The authority's files are no good; the text is a sentence for a person."""


class Authority(Struct, frozen=True):
    """The authority of a network: its certificate and its private key in PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        """Without the key."""
        return "Authority()"

    def signed(self, name: str, public: bytes) -> bytes:
        """Return a certificate in PEM for a broker's name and public key (DER).

        Raises AuthorityError.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        issuer, private = self.checked()
        try:
            subject_key = serialization.load_der_public_key(public)
            builder = x509.CertificateBuilder(
                issuer_name=issuer.subject,
                subject_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]),
                public_key=subject_key,  # type: ignore[arg-type]
                serial_number=x509.random_serial_number(),
                # Clocks without a battery begin in the past: it holds as soon as the authority.
                not_valid_before=issuer.not_valid_before_utc,
                not_valid_after=issuer.not_valid_after_utc,
            )
        except (ValueError, TypeError):
            raise AuthorityError("the public key that came is none that can be signed") from None
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(private.public_key())
        extensions: list[tuple[x509.ExtensionType, bool]] = [
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (x509.ExtendedKeyUsage(purposes), False),
            (x509.SubjectKeyIdentifier.from_public_key(subject_key), False),  # type: ignore[arg-type]
            (issuer_key, False),
        ]
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        algorithm = None if _signs_whole(private) else hashes.SHA256()
        certificate = builder.sign(private, algorithm)
        return certificate.public_bytes(serialization.Encoding.PEM)

    def checked(self) -> "tuple[x509.Certificate, CertificateIssuerPrivateKeyTypes]":
        """Return the certificate that belongs to the key, of those that the file holds.

        Raises AuthorityError.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization

        try:
            private = serialization.load_pem_private_key(self.key, None)
            certificates = x509.load_pem_x509_certificates(self.certificate)
        except (ValueError, TypeError):
            why = "no certificate or key in PEM that can be read without a passphrase"
            raise AuthorityError(f"links.tls_ca, links.tls_ca_key: {why}") from None
        for certificate in certificates:
            if certificate.public_key() == private.public_key():
                return certificate, private  # type: ignore[return-value]
        raise AuthorityError("links.tls_ca_key: it is not the key of a certificate of `tls_ca`")


def load_authority(certificate: str, key: str) -> Authority:
    """Read the authority's files and check them. Raises AuthorityError."""
    try:
        authority = Authority(Path(certificate).read_bytes(), Path(key).read_bytes())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise AuthorityError(f"links.tls_ca_key: {error.filename}: {reason}") from None
    authority.checked()
    return authority


def new_key() -> tuple[bytes, bytes]:
    """Return a new private key in PEM, and its public key in DER."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1())
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem, public


def _signs_whole(private: object) -> bool:
    """Tell whether keys of this kind sign without a digest of our choice."""
    from cryptography.hazmat.primitives.asymmetric import ed448, ed25519

    return isinstance(private, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey)
