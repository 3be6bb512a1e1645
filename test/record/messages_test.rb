# frozen_string_literal: true

require_relative "../test_helper"
require "open3"
require "pitwall/record/messages"

# What is committed of the protobuf definitions.
class MessagesTest < Minitest::Test
  Messages = Pitwall::Record::Messages

  def test_the_messages_are_those_of_the_definitions
    skip "protoc is not installed" unless system("protoc", "--version", out: File::NULL, err: File::NULL)

    out, status = Open3.capture2e(File.join(Checkout::ROOT, "script/messages"), "--check")
    assert status.success?, out
  end

  def test_a_message_of_each_set
    profile = Messages::Pprof::Profile.new(string_table: ["", "x"], sample: [Messages::Pprof::Sample.new(value: [1])])
    assert_equal profile, Messages::Pprof::Profile.decode(Messages::Pprof::Profile.encode(profile))
    dictionary = Messages::Otlp::ProfilesDictionary.new(string_table: ["", "x"])
    data = Messages::Otlp::ProfilesData.new(dictionary: dictionary)
    assert_equal data.dictionary, Messages::Otlp::ExportProfilesServiceRequest.decode(data.to_proto).dictionary
  end

  def test_each_definition_has_its_licence
    %w[opentelemetry pprof].each do |name|
      assert_match(/Apache License\s+Version 2.0/, File.read(File.join(Checkout::ROOT, "script/proto", name, "LICENSE")))
    end
  end
end
