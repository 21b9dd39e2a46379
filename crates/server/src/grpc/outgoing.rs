//! What one worker is told on one connection.
//!
//! **Invariant:** a message is made only when the connection has room for it; whoever has something to say
//! waits for a worker that reads slowly.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use backstitch_api::worker as wire;
use backstitch_engine::workers::ToWorker;
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;
use wire::from_server::Message;

use crate::grpc::mail;

/// Answers to what the worker has said on this connection that wait to be sent at most.
const REPLIES_MAX: usize = 64;

/// The stream itself. Replies go before mail, and the end comes when all mail is sent.
pub(super) struct Outgoing {
    replies: mpsc::Receiver<Message>,
    mail: mpsc::Receiver<ToWorker>,
    /// The rest of what one piece of mail became.
    made: VecDeque<wire::FromServer>,
    end: oneshot::Receiver<Status>,
    is_over: bool,
}

impl Outgoing {
    /// A stream that begins with the Welcome; whoever replies; and who says why it ends.
    pub fn new(
        welcome: wire::Welcome,
        mail: mpsc::Receiver<ToWorker>,
    ) -> (Outgoing, mpsc::Sender<Message>, oneshot::Sender<Status>) {
        let (reply, replies) = mpsc::channel(REPLIES_MAX);
        let (tell_end, end) = oneshot::channel();
        let made = VecDeque::from([whole(Message::Welcome(welcome))]);
        (Outgoing { replies, mail, made, end, is_over: false }, reply, tell_end)
    }
}

fn whole(message: Message) -> wire::FromServer {
    wire::FromServer { message: Some(message) }
}

impl Stream for Outgoing {
    type Item = Result<wire::FromServer, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        if let Some(message) = this.made.pop_front() {
            return Poll::Ready(Some(Ok(message)));
        }
        if let Poll::Ready(Some(reply)) = this.replies.poll_recv(cx) {
            return Poll::Ready(Some(Ok(whole(reply))));
        }
        while let Poll::Ready(Some(told)) = this.mail.poll_recv(cx) {
            this.made.extend(mail::messages(told));
            if let Some(message) = this.made.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
        }
        // Whoever could say why is gone without a word when the worker has ended the stream itself.
        let why = ready!(Pin::new(&mut this.end).poll(cx)).ok();
        this.is_over = true;
        Poll::Ready(why.map(Err))
    }
}
