# frozen_string_literal: true

require "net/http"
require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/shop_recording"

# `pitwall view` as a browser, a foreign page and another user meet it; and what pages refuse to be made of.
class ViewTest < Minitest::Test
  include CommandLine

  def setup
    super
    File.binwrite(file("x.pit"), ShopRecording.bytes)
  end

  def teardown
    Process.kill("KILL", @pid) && Process.wait(@pid) if @pid
    super
  end

  def serve(*options)
    @pid = pitwall_start("view", "x.pit", "--no-open", *options)
    eventually { File.exist?(file("out")) && File.read(file("out"))[/\n/] }
    URI(File.read(file("out")).chomp)
  end

  def ask(uri, path: uri.path, host: nil, verb: Net::HTTP::Get)
    request = verb.new(path)
    request["Host"] = host if host
    Net::HTTP.start(uri.host, uri.port) { |http| http.request(request) }
  end

  def refused(*arguments) = pitwall(*arguments, env: { "PITWALL_DEBUG" => nil })

  def test_the_page_is_served_to_who_knows_the_address_only
    uri = serve
    assert_equal "127.0.0.1", uri.host
    assert_operator uri.path.size, :>, 30
    page = ask(uri)
    headers = %w[content-type cache-control referrer-policy].map { |name| page[name] }
    assert_equal ["200", "text/html; charset=utf-8", "no-store", "no-referrer"], [page.code, *headers]
    assert_includes page["content-security-policy"], "default-src 'none'"
    assert_includes page.body, "<title>shop.rb · Pitwall</title>".b
    assert_equal "200", ask(uri, host: "localhost:#{uri.port}").code
    other_path = "#{uri.path.chop.chop}#{uri.path.end_with?("x/") ? "y" : "x"}/"
    ["/", "/x", uri.path.chop, other_path, "#{uri.path}../", "/favicon.ico"].each do |path|
      assert_equal "404", ask(uri, path: path).code, path
    end
    ["evil.example", "evil.example:#{uri.port}", "127.0.0.1", "127.0.0.1.evil.example:#{uri.port}"].each do |host|
      assert_equal "421", ask(uri, host: host).code, host
    end
    assert_equal "405", ask(uri, verb: Net::HTTP::Delete).code
    assert_empty ask(uri, verb: Net::HTTP::Head).body.to_s
  end

  def test_what_is_no_request_harms_nobody
    uri = serve
    ["\r\n\r\n", "GET\r\n\r\n", "\xff\x00 / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nnonsense\r\n\r\n",
     "G" * 40_000].each do |text|
      socket = TCPSocket.new(uri.host, uri.port)
      socket.write(text)
      socket.close_write
      refute_match(/ 200 /, socket.read.to_s)
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil
    ensure
      socket&.close
    end
    assert_equal "200", ask(uri).code
  end

  def test_ctrl_c_ends_it_with_status_0
    uri = serve
    Process.kill("INT", @pid)
    _, status = Process.wait2(@pid)
    @pid = nil
    assert_equal 0, status.exitstatus, File.read(file("err"))
    assert_raises(Errno::ECONNREFUSED) { ask(uri) }
  end

  # As a script's shell starts what runs in the background.
  def test_with_ctrl_c_ignored_it_says_what_ends_it
    before = trap("INT", "IGNORE")
    uri = serve
    trap("INT", before)
    said = eventually { File.read(file("err"))[/pitwall: serving.*\n/] }
    assert_match(/kill #{@pid} ends it/, said)
    Process.kill("INT", @pid)
    assert_equal "200", ask(uri).code
    Process.kill("TERM", @pid)
    _, status = Process.wait2(@pid)
    @pid = nil
    assert_equal 0, status.exitstatus, File.read(file("err"))
  ensure
    trap("INT", before) if before
  end

  def test_bad_input_is_told_in_one_line
    taken = TCPServer.new("127.0.0.1", 0)
    {
      [] => /no recording/, ["none.pit"] => /none\.pit/, ["x.pit", "--port", "0"] => /1 and 65535/,
      ["x.pit", "--port", taken.addr[1].to_s] => /is taken/, ["x.pit", "--process", "1"] => /no process 1/,
      ["x.pit", "--weight", "objects"] => /--weight objects: was not recorded; x\.pit has wall, cpu, captures/
    }.each do |arguments, expected|
      assert_one_line 2, expected, refused("view", "--no-open", *arguments), arguments.inspect
    end
    File.binwrite(file("bad.pit"), "PITWALL 1\nnonsense, nonsense")
    assert_one_line 5, /bad\.pit/, refused("view", "--no-open", "bad.pit")
  ensure
    taken&.close
  end

  def test_a_page_goes_into_a_file_and_takes_no_options_of_text
    result = pitwall("report", "x.pit", "--format", "html", "--out", "x.html")
    assert_equal [0, "", ""], [result.status.exitstatus, result.out, result.err]
    assert File.read(file("x.html")).start_with?("<!doctype html>")
    page = ["report", "x.pit", "--format", "html", "--out", "y.html"]
    [%w[--limit 3], %w[--view threads], %w[--tree], %w[--thread main], %w[--gc apart], %w[--audit], %w[--label r=b],
     %w[--by class]].each do |options|
      refusal = /--format html: the page has .*leave out #{options[0]}/
      assert_one_line 2, refusal, refused(*page, *options), options.inspect
    end
    assert_one_line 2, /--weight objects: no objects/, refused(*page, "--weight", "objects")
    assert_one_line 2, /--no-source is for --format html/, refused("report", "x.pit", "--no-source")
    refute_path_exists file("y.html")
    %w[profile trace allocations].each do |verb|
      assert_one_line 2, /add --out FILE\.html/, refused(verb, "--format", "html", "--", "true"), verb
    end
    assert_one_line 2, /add --out FILE\.html/, refused("bench", "--format", "html", "-e", "1")
  end
end
