//! The WebSocket server of the subject tungstenite: server PORT echo|broadcast plain.
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{accept_async_with_config, WebSocketStream};

async fn echo(mut socket: WebSocketStream<TcpStream>) {
    while let Some(Ok(message)) = socket.next().await {
        if !(message.is_text() || message.is_binary()) {
            continue;
        }
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

async fn subscribe(socket: WebSocketStream<TcpStream>, messages: broadcast::Sender<Message>) {
    let mut subscribed = messages.subscribe();
    let (mut sink, mut stream) = socket.split();
    loop {
        tokio::select! {
            received = stream.next() => match received {
                Some(Ok(message)) => {
                    if message.is_text() || message.is_binary() {
                        let _ = messages.send(message);
                    }
                }
                _ => return,
            },
            published = subscribed.recv() => {
                let Ok(message) = published else { return };
                if sink.send(message).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_broadcast = arguments[2] == "broadcast";
    let listener = TcpListener::bind(format!("127.0.0.1:{}", arguments[1])).await.unwrap();
    let (messages, _) = broadcast::channel(16);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let _ = stream.set_nodelay(true);
        let messages = messages.clone();
        tokio::spawn(async move {
            let mut config = WebSocketConfig::default();
            config.max_message_size = Some(16 << 20);
            let Ok(socket) = accept_async_with_config(stream, Some(config)).await else { return };
            if is_broadcast {
                subscribe(socket, messages).await;
            } else {
                echo(socket).await;
            }
        });
    }
}
