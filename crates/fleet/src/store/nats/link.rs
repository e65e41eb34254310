//! The line to the server: every question goes through [`Link::ask`], which waits for a connection, for a time, and for the server's word that it is not allowed.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_nats::{
    Client, Event, HeaderMap, Request, ServerError,
    connection::State,
    jetstream::{
        self, ErrorCode,
        publish::PublishAck,
        response::Response,
        stream::{Config, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream},
    },
};
use tokio::{sync::broadcast, time};

use super::{Entry, Error, Put, Revision, faults, locked, settings::Settings, watch::Watch};

#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) settings: Arc<Settings>,
    pub(super) watch: Arc<Watch>,
    pub(super) bucket: Stream<()>,
    pub(super) log: Stream<()>,
    client: Client,
    refusals: Refusals,
}

/// What the server said that we may not do. It says so beside the answer, which never comes.
#[derive(Debug, Clone)]
struct Refusals {
    sender: broadcast::Sender<String>,
    /// We may not hear answers: that stays so.
    deaf: Arc<Mutex<Option<String>>>,
}

impl Link {
    pub(super) async fn open(settings: Settings) -> Result<Self, Error> {
        let settings = Arc::new(settings);
        let watch = Arc::new(Watch::new(settings.lease));
        let refusals = Refusals { sender: broadcast::channel(64).0, deaf: Arc::default() };
        let (heard, seen) = (refusals.clone(), Arc::clone(&watch));
        let options = settings.options()?.event_callback(move |event| {
            match event {
                Event::Disconnected => seen.interrupted(),
                Event::ServerError(ServerError::Other(text)) if text.to_lowercase().contains("permissions violation") => heard.note(&text),
                _ => {}
            }
            std::future::ready(())
        });
        let client = options.connect(settings.addresses()?).await.map_err(|e| faults::of_connect(&e, &settings))?;
        faults::of_version(&client.server_info().version, &settings)?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(settings.timeout);
        let stream = |name: String| {
            let context = context.clone();
            async move { context.get_stream_no_info(name).await.map_err(|e| faults::of_chain(&e)) }
        };
        let bucket = stream(settings.bucket_stream()).await?;
        let log = stream(settings.log_stream()).await?;
        let link = Link { settings, watch, bucket, log, client, refusals };
        link.make(&link.settings.bucket_config()).await?;
        link.make(&link.settings.log_config()).await?;
        Ok(link)
    }

    pub(super) fn server_version(&self) -> String {
        self.client.server_info().version
    }

    pub(super) fn new_inbox(&self) -> String {
        self.client.new_inbox()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Opens a line anew that says nothing.
    pub(super) async fn reconnect(&self) {
        let _ = self.client.force_reconnect().await;
    }

    /// Waits for a connection.
    pub(super) async fn connected(&self, patience: Duration) -> Result<(), Error> {
        let limit = Instant::now() + patience;
        while !self.is_connected() {
            if Instant::now() >= limit {
                return Err(Error::Unreachable(format!("no connection to {}", self.settings.shown())));
            }
            time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Asks again while there is no answer. For what may be asked twice.
    pub(super) async fn patiently<T, F: Future<Output = Result<T, Error>>>(&self, question: impl Fn() -> F) -> Result<T, Error> {
        let limit = Instant::now() + self.settings.patience;
        loop {
            match question().await {
                Err(Error::Unreachable(_)) if Instant::now() < limit => time::sleep(Duration::from_millis(50)).await,
                answer => return answer,
            }
        }
    }

    /// Waits for what a question brings. `subject`: what the server names if we may not ask.
    pub(super) async fn ask<T>(&self, subject: &str, question: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let mut refusals = self.refusals.sender.subscribe();
        // Not into the client's buffer: what is sent from there after its time comes as a surprise.
        self.connected(self.settings.timeout).await?;
        let refused = async {
            loop {
                match refusals.recv().await {
                    Ok(text) if text.contains(subject) => return text,
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        let answer = tokio::select! {
            answer = time::timeout(self.settings.timeout, question) => answer.unwrap_or_else(|_| Err(Error::Unreachable("no answer in time".to_owned()))),
            text = refused => return Err(faults::of_violation(&text)),
        };
        match (&answer, &*locked(&self.refusals.deaf)) {
            (Err(Error::Unreachable(_)), Some(text)) => return Err(faults::of_violation(text)),
            (Err(Error::Unreachable(_)), None) => {}
            _ => self.watch.answered(),
        }
        answer
    }

    async fn request<T: serde::de::DeserializeOwned>(&self, subject: &str, request: Request) -> Result<Response<T>, Error> {
        self.ask(subject, async {
            let message = self.client.send_request(subject.to_owned(), request).await.map_err(|e| faults::of_request(&e))?;
            serde_json::from_slice(&message.payload).map_err(|e| Error::Broken(format!("the NATS server's answer cannot be read: {e}")))
        })
        .await
    }

    /// Makes a stream unless it exists. One that was made by hand, with other settings, is used as it is.
    async fn make(&self, config: &Config) -> Result<(), Error> {
        let api = |verb: &str| format!("$JS.API.STREAM.{verb}.{}", config.name);
        let found: Response<serde_json::Value> = match self.request(&api("INFO"), Request::new()).await {
            Err(Error::Unreachable(_)) if self.is_connected() => return Err(faults::no_jetstream(&self.settings)),
            found => found?,
        };
        match found {
            Response::Ok(_) => return Ok(()),
            Response::Err { error } if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {}
            Response::Err { error } if error.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => {
                return Err(faults::no_jetstream(&self.settings));
            }
            Response::Err { error } => return Err(faults::of_server(&error)),
        }
        let payload = serde_json::to_vec(config).map_err(|e| Error::Broken(e.to_string()))?;
        match self.request::<serde_json::Value>(&api("CREATE"), Request::new().payload(payload.into())).await? {
            // Someone else made it meanwhile.
            Response::Err { error } if error.error_code() == ErrorCode::STREAM_NAME_EXIST => Ok(()),
            Response::Err { error } => Err(faults::of_server(&error)),
            Response::Ok(_) => Ok(()),
        }
    }

    /// The value of a key as the stream's leader has it.
    pub(super) async fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        let last = self.last_of(&self.settings.subject(key)).await?;
        // One that was deleted by hand has no value.
        Ok(last.filter(|(_, value)| !value.is_empty()).map(|(revision, value)| Entry { revision, value }))
    }

    /// The number of the last write to any key. The server knows the last message of all, while for a pattern it would look at every key.
    pub(super) async fn last_revision(&self) -> Result<Revision, Error> {
        Ok(self.last_of(">").await?.map_or(0, |(revision, _)| revision))
    }

    async fn last_of(&self, subject: &str) -> Result<Option<(Revision, Vec<u8>)>, Error> {
        let api = format!("$JS.API.STREAM.MSG.GET.{}", self.settings.bucket_stream());
        self.ask(&api, async {
            match self.bucket.get_last_raw_message_by_subject(subject).await {
                Ok(message) => Ok(Some((message.sequence, message.payload.to_vec()))),
                Err(e) => match e.kind() {
                    LastRawMessageErrorKind::NoMessageFound => Ok(None),
                    LastRawMessageErrorKind::JetStream(error) => Err(faults::of_server(&error)),
                    _ => Err(faults::of_chain(&e)),
                },
            }
        })
        .await
    }

    pub(super) async fn put_if(&self, key: &str, value: &[u8], revision: Revision) -> Result<Put, Error> {
        self.watch.trusted()?;
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", revision.to_string());
        match self.publish(&self.settings.subject(key), headers, value).await? {
            Response::Ok(ack) => Ok(Put::Stored(ack.sequence)),
            Response::Err { error } if faults::is_lost(&error) => Ok(Put::Lost),
            Response::Err { error } => {
                let error = faults::of_server(&error);
                if matches!(error, Error::Full(_)) {
                    self.watch.full();
                }
                Err(error)
            }
        }
    }

    /// Adds a line to a log. The server drops a second copy with the same id, so it may be sent again.
    pub(super) async fn append(&self, log: &str, line: &str, id: &str) -> Result<(), Error> {
        let subject = self.settings.log_subject(log);
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", id);
        match self.publish(&subject, headers, line.as_bytes()).await? {
            Response::Ok(_) => Ok(()),
            Response::Err { error } => Err(faults::of_server(&error)),
        }
    }

    async fn publish(&self, subject: &str, headers: HeaderMap, value: &[u8]) -> Result<Response<PublishAck>, Error> {
        self.request(subject, Request::new().headers(headers).payload(value.to_vec().into())).await
    }
}

impl Refusals {
    fn note(&self, text: &str) {
        if text.contains("_INBOX") {
            *locked(&self.deaf) = Some(text.to_owned());
        }
        // Nobody waits: nobody is told.
        let _ = self.sender.send(text.to_owned());
    }
}

impl Settings {
    pub(super) fn bucket_stream(&self) -> String {
        format!("KV_ralph-{}", self.fleet)
    }

    pub(super) fn log_stream(&self) -> String {
        format!("ralph-log-{}", self.fleet)
    }

    pub(super) fn subject(&self, key: &str) -> String {
        format!("$KV.ralph-{}.{key}", self.fleet)
    }

    pub(super) fn log_subject(&self, log: &str) -> String {
        format!("ralph.{}.log.{log}", self.fleet)
    }

    /// As the `nats` command makes a bucket, so that it can be looked at with that.
    fn bucket_config(&self) -> Config {
        Config {
            name: self.bucket_stream(),
            subjects: vec![self.subject(">")],
            max_messages_per_subject: self.history,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            storage: StorageType::File,
            num_replicas: 1,
            ..Config::default()
        }
    }

    fn log_config(&self) -> Config {
        Config {
            name: self.log_stream(),
            subjects: vec![self.log_subject(">")],
            max_bytes: self.log_bytes,
            discard: DiscardPolicy::Old,
            storage: StorageType::File,
            num_replicas: 1,
            ..Config::default()
        }
    }
}
