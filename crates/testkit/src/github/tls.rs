//! Certificates for the hosts that a scripted GitHub plays: one from an authority that tests trust, one from nobody.

use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Writes the authority's certificate to `ca` and returns the server's side of it.
pub(super) fn trusted(ca: &Path, hosts: &[&str]) -> Arc<ServerConfig> {
    let (config, authority) = signed("ralph test authority", hosts);
    std::fs::write(ca, authority).unwrap();
    config
}

/// The same with an authority that nobody has heard of.
pub(super) fn untrusted(hosts: &[&str]) -> Arc<ServerConfig> {
    signed("nobody", hosts).0
}

fn signed(authority: &str, hosts: &[&str]) -> (Arc<ServerConfig>, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, authority);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);

    let names: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
    let leaf_key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(names).unwrap().signed_by(&leaf_key, &issuer).unwrap();
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
    // Named, because a process may hold several providers and then has no default.
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private)
        .unwrap();
    (Arc::new(config), certificate)
}
