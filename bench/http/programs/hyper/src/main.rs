//! The HTTP server of the subject hyper: hyper-server PORT BYTES FOLDER plain|tls 1|2.

mod arena;

use std::convert::Infallible;
use std::env;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, CONTENT_ENCODING, CONTENT_TYPE};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
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

/// What requests ask for.
struct Contents {
    text: Bytes,
    stock: arena::Stock,
}

/// Reads a body, and returns its size and its beginning.
async fn receive(request: Request<Incoming>) -> (usize, Bytes) {
    let mut body = request.into_body();
    let mut size = 0;
    let mut first = Bytes::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(piece) = frame.into_data() {
            if size == 0 {
                first = piece.clone();
            }
            size += piece.len();
        }
    }
    (size, first)
}

async fn answer_sum(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let sum = arena::sum_of(request.uri().query().unwrap_or_default());
    let (_, text) = receive(request).await;
    let added = std::str::from_utf8(&text)
        .ok()
        .and_then(|text| text.parse::<i64>().ok())
        .unwrap_or(0);
    response("text/plain", (sum + added).to_string().into())
}

async fn answer(
    request: Request<Incoming>,
    contents: Rc<Contents>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let query = request.uri().query().unwrap_or_default();
    Ok(match request.uri().path() {
        "/file" => response("text/plain", contents.text.clone()),
        "/small" => response("text/plain", Bytes::from("s".repeat(64))),
        "/pipeline" => response("text/plain", Bytes::from_static(b"ok")),
        "/json" => response("application/json", json_text(contents.text.len()).into()),
        "/baseline2" | "/baseline11" => answer_sum(request).await,
        path => {
            if let Some(count) = path.strip_prefix("/json/") {
                response("application/json", contents.stock.json(count, query).into())
            } else if let Some(count) = path.strip_prefix("/json-comp/") {
                let body = arena::gzip(&contents.stock.json(count, query));
                let mut response = response("application/json", body.into());
                response
                    .headers_mut()
                    .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                response
            } else {
                let (size, _) = receive(request).await;
                response("text/plain", size.to_string().into())
            }
        }
    })
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    contents: Rc<Contents>,
    http_2: bool,
) {
    let service = service_fn(move |request| answer(request, contents.clone()));
    // A client that disconnects is not an error.
    if http_2 {
        let _ = http2::Builder::new(LocalExecutor)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    } else {
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .pipeline_flush(true)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }
}

/// Runs the tasks of a connection on the only thread.
#[derive(Clone)]
struct LocalExecutor;

impl<F: std::future::Future<Output = ()> + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

fn acceptor(folder: &str, http_2: bool) -> TlsAcceptor {
    let pem = format!("{folder}/server.pem");
    let certificates = CertificateDer::pem_file_iter(&pem)
        .unwrap()
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_file(&pem).unwrap())
        .unwrap();
    if http_2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    TlsAcceptor::from(Arc::new(config))
}

fn listen(port: u16) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(([127, 0, 0, 1], port).into()).unwrap();
    socket.listen(4096).unwrap()
}

async fn run(port: u16, contents: Rc<Contents>, tls: Option<TlsAcceptor>, http_2: bool) {
    let listener = listen(port);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let contents = contents.clone();
        let tls = tls.clone();
        tokio::task::spawn_local(async move {
            match tls {
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, contents, http_2).await;
                    }
                }
                None => serve(stream, contents, http_2).await,
            }
        });
    }
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let contents = Rc::new(Contents {
        text: Bytes::from(vec![b'b'; arguments[2].parse().unwrap()]),
        stock: arena::Stock::new(),
    });
    let http_2 = arguments[5] == "2";
    let tls = (arguments[4] == "tls").then(|| acceptor(&arguments[3], http_2));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(
        &runtime,
        run(arguments[1].parse().unwrap(), contents, tls, http_2),
    );
}
