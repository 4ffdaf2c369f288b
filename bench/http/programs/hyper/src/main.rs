//! The HTTP/2 server of the subject hyper: hyper-server PORT BYTES FOLDER plain|tls.

use std::convert::Infallible;
use std::env;
use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

fn response(media_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, media_type.parse().unwrap());
    response
}

/// The same text as json_text() of the harness makes.
fn json_text(bytes: usize) -> String {
    let mut text = String::from("[");
    for id in 1000.. {
        if text.len() + 50 >= bytes {
            break;
        }
        if text.len() > 1 {
            text.push(',');
        }
        write!(text, r#"{{"id":{id},"name":"item {id}","done":false}}"#).unwrap();
    }
    text.push(']');
    text
}

fn sum_of(query: &str) -> i64 {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter_map(|(_, value)| value.parse::<i64>().ok())
        .sum()
}

async fn answer(
    request: Request<Incoming>,
    body: Bytes,
) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match request.uri().path() {
        "/file" => response("text/plain", body),
        "/small" => response("text/plain", Bytes::from("s".repeat(64))),
        "/json" => response("application/json", json_text(body.len()).into()),
        "/baseline2" => {
            let sum = sum_of(request.uri().query().unwrap_or_default());
            response("text/plain", sum.to_string().into())
        }
        _ => {
            let mut upload = request.into_body();
            while let Some(Ok(_)) = upload.frame().await {}
            response("text/plain", Bytes::from_static(b"ok"))
        }
    })
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(stream: S, body: Bytes) {
    let service = service_fn(move |request| answer(request, body.clone()));
    // A client that disconnects is not an error.
    let _ = http2::Builder::new(LocalExecutor)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Runs the tasks of a connection on the only thread.
#[derive(Clone)]
struct LocalExecutor;

impl<F: std::future::Future<Output = ()> + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

fn acceptor(folder: &str) -> TlsAcceptor {
    let pem = format!("{folder}/server.pem");
    let certificates = CertificateDer::pem_file_iter(&pem)
        .unwrap()
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_file(&pem).unwrap())
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn run(port: u16, body: Bytes, tls: Option<TlsAcceptor>) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let body = body.clone();
        let tls = tls.clone();
        tokio::task::spawn_local(async move {
            match tls {
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, body).await;
                    }
                }
                None => serve(stream, body).await,
            }
        });
    }
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let body = Bytes::from(vec![b'b'; arguments[2].parse().unwrap()]);
    let tls = (arguments[4] == "tls").then(|| acceptor(&arguments[3]));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, run(arguments[1].parse().unwrap(), body, tls));
}
