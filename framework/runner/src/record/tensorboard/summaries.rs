//! Builds the summaries that TensorBoard shows, from its protobuf messages.

use protobuf::Message;
use protobuf::well_known_types;
use serde_json::Value;
use tch::{Device, Kind, Tensor};
use tensorboard_proto::api::Status;
use tensorboard_proto::plugin_hparams::{HParamsPluginData, SessionEndInfo, SessionStartInfo};
use tensorboard_proto::summary::{
    HistogramProto, Summary_Image, Summary_Value, SummaryMetadata, SummaryMetadata_PluginData,
};
use tensorboard_proto::tensor::TensorProto;
use tensorboard_proto::tensor_shape::{TensorShapeProto, TensorShapeProto_Dim};
use tensorboard_proto::types::DataType;

use crate::record::Picture;

/// Buckets of a histogram.
const BUCKETS: i64 = 40;
/// What image summaries call red, green and blue.
const RGB: i32 = 3;

/// A point of a curve.
pub fn scalar(tag: &str, number: f32) -> Summary_Value {
    let mut value = tagged(tag);
    value.set_simple_value(number);
    value
}

/// The distribution of those of `values` that are finite; `None` if there are none.
pub fn histogram(tag: &str, values: &Tensor) -> Option<Summary_Value> {
    let values = values.detach().flatten(0, -1).to_kind(Kind::Double);
    let values = values.masked_select(&values.isfinite()).to_device(Device::Cpu);
    if values.numel() == 0 {
        return None;
    }
    let (least, most) = (values.min().double_value(&[]), values.max().double_value(&[]));
    // All values may be the same.
    let width = ((most - least) / BUCKETS as f64).max(f64::MIN_POSITIVE);
    let bucket = ((&values - least) / width)
        .floor()
        .clamp(0.0, BUCKETS as f64 - 1.0);
    let counts = bucket.to_kind(Kind::Int64).bincount::<Tensor>(None, BUCKETS);
    let mut histogram = HistogramProto::new();
    histogram.set_min(least);
    histogram.set_max(most);
    histogram.set_num(values.numel() as f64);
    histogram.set_sum(values.sum(Kind::Double).double_value(&[]));
    histogram.set_sum_squares(values.square().sum(Kind::Double).double_value(&[]));
    let last = BUCKETS - 1;
    let limits = (0..BUCKETS).map(|i| {
        if i == last {
            most
        } else {
            least + (i + 1) as f64 * width
        }
    });
    histogram.set_bucket_limit(limits.collect());
    let counts = Vec::try_from(counts.to_kind(Kind::Double));
    histogram.set_bucket(counts.expect("a tensor of one dimension on the CPU"));
    let mut value = tagged(tag);
    value.set_histo(histogram);
    Some(value)
}

/// A picture.
pub fn picture(tag: &str, picture: &Picture) -> anyhow::Result<Summary_Value> {
    let mut image = Summary_Image::new();
    image.set_height(picture.height as i32);
    image.set_width(picture.width as i32);
    image.set_colorspace(RGB);
    image.set_encoded_image_string(picture.png()?);
    let mut value = tagged(tag);
    value.set_image(image);
    Ok(value)
}

/// A text in Markdown.
pub fn text(tag: &str, markdown: &str) -> Summary_Value {
    let mut tensor = tensor(DataType::DT_STRING, 1);
    tensor.set_string_val(vec![markdown.as_bytes().to_vec()].into());
    let mut value = tagged(tag);
    value.set_metadata(metadata("text", Vec::new()));
    value.set_tensor(tensor);
    value
}

/// The values that a run was started with.
pub fn session_start<'a>(
    values: impl Iterator<Item = (&'a str, &'a Value)>,
    seconds: f64,
) -> anyhow::Result<Summary_Value> {
    let mut info = SessionStartInfo::new();
    info.set_hparams(
        values
            .map(|(key, value)| (key.to_owned(), hyper_parameter(value)))
            .collect(),
    );
    info.set_start_time_secs(seconds);
    let mut data = HParamsPluginData::new();
    data.set_session_start_info(info);
    hparams("_hparams_/session_start_info", &data)
}

/// How a run ended.
pub fn session_end(finished: bool, seconds: f64) -> anyhow::Result<Summary_Value> {
    let mut info = SessionEndInfo::new();
    info.set_status(if finished {
        Status::STATUS_SUCCESS
    } else {
        Status::STATUS_FAILURE
    });
    info.set_end_time_secs(seconds);
    let mut data = HParamsPluginData::new();
    data.set_session_end_info(info);
    hparams("_hparams_/session_end_info", &data)
}

/// TensorBoard knows numbers, words and truth values; anything else is shown as it is written.
fn hyper_parameter(value: &Value) -> well_known_types::Value {
    let mut parameter = well_known_types::Value::new();
    match value {
        Value::Bool(value) => parameter.set_bool_value(*value),
        Value::Number(number) => parameter.set_number_value(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => parameter.set_string_value(text.clone()),
        other => parameter.set_string_value(other.to_string()),
    }
    parameter
}

fn hparams(tag: &str, data: &HParamsPluginData) -> anyhow::Result<Summary_Value> {
    let mut value = tagged(tag);
    value.set_metadata(metadata("hparams", data.write_to_bytes()?));
    // What TensorBoard's own writer puts there.
    let mut nothing = tensor(DataType::DT_FLOAT, 1);
    nothing.set_float_val(vec![0.0]);
    value.set_tensor(nothing);
    Ok(value)
}

fn metadata(plugin: &str, content: Vec<u8>) -> SummaryMetadata {
    let mut data = SummaryMetadata_PluginData::new();
    data.set_plugin_name(plugin.into());
    data.set_content(content);
    let mut metadata = SummaryMetadata::new();
    metadata.set_plugin_data(data);
    metadata
}

/// A vector of so many elements, still to be filled.
fn tensor(kind: DataType, length: i64) -> TensorProto {
    let mut dimension = TensorShapeProto_Dim::new();
    dimension.set_size(length);
    let mut shape = TensorShapeProto::new();
    shape.set_dim(vec![dimension].into());
    let mut tensor = TensorProto::new();
    tensor.set_dtype(kind);
    tensor.set_tensor_shape(shape);
    tensor
}

fn tagged(tag: &str) -> Summary_Value {
    let mut value = Summary_Value::new();
    value.set_tag(tag.into());
    value
}
