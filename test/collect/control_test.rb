# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require "pitwall"
require "json"
require "net/http"

# Who may start and stop a recording by HTTP: nobody but this machine, with the token.
class ControlTest < Minitest::Test
  include RecordedProgram

  TOKEN = "0123456789abcdef" * 4
  GOOD = { method: "GET", action: "status", host: "127.0.0.1:9292", peer: "127.0.0.1", authorization: "Bearer #{TOKEN}" }.freeze

  def answer(**changed) = Pitwall::Collect::Control.new(TOKEN).answer(**GOOD, **changed)
  def status(**changed) = answer(**changed).first

  def test_only_for_this_machine
    ["localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:9", "[::1]:9292"].each { |host| refute_equal 403, status(host: host), host }
    [nil, "", "example.com", "example.com:9292", "127.0.0.1.example.com", "localhost.example.com", "0.0.0.0", "10.0.0.1", "evil\n127.0.0.1", "127.0.0.1\nevil"].each do |host|
      assert_equal 403, status(host: host), host.inspect
    end
    ["10.0.0.7", "", nil, "192.168.0.1", "::2"].each { |peer| assert_equal 403, status(peer: peer), peer.inspect }
    ["::1", "127.0.0.1", "::ffff:127.0.0.1"].each { |peer| refute_equal 403, status(peer: peer), peer }
    assert_equal 403, status(forwarded: true)
  end

  def test_only_with_the_token
    [nil, "", "Bearer", "Bearer ", TOKEN, "Basic #{TOKEN}", "Bearer #{TOKEN}x", "Bearer #{TOKEN[0..-2]}", "Bearer #{TOKEN.tr("0", "1")}", "Bearer #{"é" * 32}"].each do |header|
      assert_equal 401, status(authorization: header), header.inspect
    end
    refute_equal 401, status(authorization: "bearer #{TOKEN}")
  end

  def test_what_can_be_asked
    assert_equal 404, status(action: "dance")
    assert_equal 404, status(action: "")
    assert_equal [405, "GET"], answer(method: "POST").then { |code, headers,| [code, headers["allow"]] }
    %w[start stop rotate].each { |action| assert_equal 405, status(action: action) }
    code, headers, body = answer
    assert_equal [503, "application/json", body.bytesize.to_s], [code, headers["content-type"], headers["content-length"]]
    assert_equal "Pitwall.continuous is not on in this process", JSON.parse(body)["error"]
  end

  def test_the_token_is_the_owners
    first = Pitwall::Collect::Control.token(@dir)
    assert_match(/\A\h{64}\z/, first)
    assert_equal first, Pitwall::Collect::Control.token(@dir)
    assert_equal 0o600, File.stat(file("token")).mode & 0o777
    File.chmod(0o644, file("token"))
    assert_match(/readable by others: chmod 600/, assert_raises(Pitwall::UsageError) { Pitwall::Collect::Control.token(@dir) }.message)
    File.write(file("token"), "\n")
    File.chmod(0o600, file("token"))
    assert_match(/the token is too short/, assert_raises(Pitwall::UsageError) { Pitwall::Collect::Control.token(@dir) }.message)
    assert_match(/No such file.*no token, no endpoint/, assert_raises(Pitwall::UsageError) { Pitwall::Collect::Control.token(file("none")) }.message)
  end

  # A program that records, asked from outside.
  def with_server
    source = <<~RUBY
      Pitwall::Collect::Continuous.send(:remove_const, :LOOK_S); Pitwall::Collect::Continuous.const_set(:LOOK_S, 0.05)
      port = Pitwall.continuous(dir: "d", rate: 1000, control: 0)
      Process.wait(fork { puts Pitwall::Collect::Continuous.instance_variable_get(:@listener).inspect; burn(0.01) })
      File.write("port.new", port.to_s); File.rename("port.new", "port")
      burn(0.01) until File.exist?("end")
    RUBY
    program = Thread.new { attempt(source) }
    program.report_on_exception = false
    sleep 0.02 until File.exist?(file("port")) || !program.alive?
    yield Integer(File.read(file("port")))
  ensure
    File.write(file("end"), "")
    result = program&.value
    assert_equal ["nil\n", ""], [result.out, result.err] if result
  end

  def ask(port, method, path, **headers)
    request = Net::HTTP.const_get(method.capitalize).new(path, { "Authorization" => "Bearer #{File.read(file("d/token")).strip}" }.merge(headers.transform_keys(&:to_s)))
    response = Net::HTTP.start("127.0.0.1", port, open_timeout: 120, read_timeout: 120) { |http| http.request(request) }
    [response.code.to_i, JSON.parse(response.body)]
  end

  def until_status(port, wanted)
    eventually { ask(port, "get", "/status").last["recording"] == wanted }
  end

  def test_the_listener
    with_server do |port|
      code, status = ask(port, "get", "/status?x=1")
      assert_equal [200, "start", true, 1000, nil], [code, *status.values_at("wanted", "recording", "rate", "problem")]
      assert_equal 403, ask(port, "get", "/status", Host: "evil.example").first
      assert_equal 401, ask(port, "post", "/stop", Authorization: "Bearer x").first
      assert_equal 405, ask(port, "get", "/stop").first
      assert_equal 200, ask(port, "post", "/stop").first
      assert until_status(port, false)
      assert_equal 200, ask(port, "post", "/start").first
      assert until_status(port, true)
      before = ask(port, "get", "/status").last["file"]
      ask(port, "post", "/rotate")
      eventually { ask(port, "get", "/status").last["file"] != before }
      # Nonsense ends its own connection only.
      ["\r\n\r\n", "GET\r\n\r\n", "\xFF\x00\r\n\r\n", "GET /status HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n", "x" * 20_000].each do |bytes|
        TCPSocket.open("127.0.0.1", port) { |socket| socket.write(bytes); socket.close_write; assert_match(%r{\A(HTTP/1.1 4\d\d .*)?\z}m, (socket.read rescue "")) }
      end
      TCPSocket.open("127.0.0.1", port) { |socket| socket.write("GET /sta") } # and goes
      assert_equal 200, ask(port, "get", "/status").first
    end
    assert_operator Dir[file("d/*.pit")].size, :>=, 3
  end

  # Then nothing is recorded, nor listened to.
  def test_a_token_that_is_bad
    out = run_program(<<~RUBY)
      Dir.mkdir("d")
      File.write("d/token", "x" * 64)
      File.chmod(0o644, "d/token")
      puts problem { Pitwall.continuous(dir: "d", control: 0) }, Pitwall.recording?, Dir["d/*.pit"].size
      File.chmod(0o600, "d/token")
      trap("URG") { }
      puts problem { Pitwall.continuous(dir: "d", control: 0, signal: "URG") }, Thread.list.size
      raise unless Pitwall.continuous(dir: "d", control: 0, mode: "safepoint").positive?
      burn(0.01)
    RUBY
    assert_match(%r{\AUsageError: .*/d/token is readable by others: chmod 600 .*/d/token\nfalse\n0\nCannotMeasure: signal URG is already handled.*\n[12]\n\z}, out)
  end

  def test_a_folder_that_is_gone
    # A look may come meanwhile, and tell of it.
    out = attempt(<<~RUBY).out
      require "pitwall/rack"
      require "socket"
      port = Pitwall.continuous(dir: "d", control: 0)
      token = File.read("d/token").strip
      File.rename("d", "e")
      %w[status rotate].zip(%w[GET POST]) do |action, method|
        socket = TCPSocket.new("127.0.0.1", port)
        socket.write("\#{method} /\#{action} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nAuthorization: Bearer \#{token}\\r\\n\\r\\n")
        puts socket.read.lines.values_at(0, -1)
      end
      File.rename("e", "d")
      app = Pitwall::Rack::Control.new(->(env) { [404, {}, []] }, dir: "d")
      File.rename("d", "e")
      puts app.call("PATH_INFO" => "/pitwall/status", "REQUEST_METHOD" => "GET", "HTTP_HOST" => "127.0.0.1", "REMOTE_ADDR" => "127.0.0.1", "HTTP_AUTHORIZATION" => "Bearer \#{token}").then { |status, _, body| [status, body] }
    RUBY
    *listener, status, body = out.lines.map(&:chomp)
    listener.each_slice(2) { |line, json| assert_equal ["HTTP/1.1 503 Service Unavailable", "#{file("d")}: No such file or directory: no request works until the folder is mended"], [line, JSON.parse(json)["error"]] }
    assert_equal 4, listener.size
    assert_equal "503", status
    assert_match(/No such file or directory/, body)
  end

  def test_a_port_that_is_taken
    server = TCPServer.new("127.0.0.1", 0)
    out = run_program("print problem { Pitwall.continuous(dir: 'd', control: #{server.local_address.ip_port}) }, Pitwall.recording?, Pitwall.continuous(dir: 'd')")
    assert_match(/UsageError: port \d+ of 127\.0\.0\.1: Address already in use: choose another, or 0false\z/, out)
  ensure
    server&.close
  end
end
